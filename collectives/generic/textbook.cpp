// See textbook.h. step() is on the engine's hot path: no allocation, no search.
#include "collectives/generic/textbook.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

namespace ghostrank {
namespace {

void demand(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// Copies field by field: the fields of `from` were just stored one by one, and a wide load of the
// whole block would stall on store forwarding.
void assign(Block& to, const Block& from) {
  to.offset = from.offset;
  to.count = from.count;
  to.buffer = from.buffer;
}

// The block that holds slices [first, first + n) of `block`.
Block slices_of(const Block& block, std::uint64_t slice_elements, std::uint64_t first,
                std::uint64_t n) {
  const std::uint64_t begin = std::min(block.count, first * slice_elements);
  return {block.offset + begin, std::min(n * slice_elements, block.count - begin), block.buffer};
}

}  // namespace

Block near_equal(std::uint64_t count, int j, int pieces) {
  const std::uint64_t i = j, n = pieces;
  const std::uint64_t longer = count % n;
  return {i * (count / n) + std::min(i, longer), count / n + (i < longer ? 1 : 0)};
}

Nodes::Nodes(const std::vector<std::int32_t>& node_of) {
  std::vector<NodeSpan> nodes;
  std::unordered_set<std::int32_t> seen;
  for (std::size_t r = 0; r < node_of.size(); ++r) {
    if (r > 0 && node_of[r] == node_of[r - 1]) {
      ++nodes.back().ranks;
    } else {
      if (!seen.insert(node_of[r]).second) return;  // scattered ranks: no node to rotate in
      nodes.push_back({static_cast<std::int32_t>(r), 1});
    }
  }
  if (nodes.empty()) return;
  const auto same_size = [&](const NodeSpan& n) { return n.ranks == nodes.front().ranks; };
  if (std::all_of(nodes.begin(), nodes.end(), same_size)) {
    ranks_ = nodes.front().ranks;
    return;
  }
  std::vector<NodeSpan> by_rank;
  for (const NodeSpan& node : nodes)
    by_rank.insert(by_rank.end(), static_cast<std::size_t>(node.ranks), node);
  spans_ = std::make_shared<const std::vector<NodeSpan>>(std::move(by_rank));
}

void check_arguments(const Collective& c, const Communicator& comm) {
  demand(c.size >= 1, "a collective needs at least one rank");
  demand(c.root >= 0 && c.root < c.size, "the root is not a rank of the group");
  demand(c.func != Func::send_recv || c.size < 2 ||
             (c.target >= 0 && c.target < c.size && c.target != c.root),
         "the receiver of a send_recv is another rank of the group");
  demand(c.element_bytes >= 1, "elements have at least one byte");
  demand(comm.node_of.empty() || comm.node_of.size() == static_cast<std::size_t>(c.size),
         "node_of must name a node for every rank of the group");
  const std::size_t needed = counts_needed(c.func, c.size);
  if ((c.counts ? c.counts->size() : 0) == needed) return;
  throw std::invalid_argument(std::string(name_of(c.func)) + " needs " + std::to_string(needed) +
                              " counts for " + std::to_string(c.size) + " ranks, here are " +
                              std::to_string(c.counts ? c.counts->size() : 0));
}

Block Ragged::share_of(const Block& block) const {
  const Block share = near_equal(block.count, channel, channels);
  return {block.offset + share.offset, share.count, block.buffer};
}

Textbook::Textbook(const Form& form, const Collective& c, const Communicator& comm)
    : Schedule(c, comm.flow_control), form_(form) {
  check_arguments(c, comm);
  const Nodes nodes = form.ranks == Form::Ranks::rotated ? Nodes(comm.node_of) : Nodes();
  layout_ = std::make_shared<const Layout>(c);
  const std::uint64_t elements = c.func == Func::barrier ? 0 : layout_->longest();
  const std::uint64_t wanted = std::max(1, comm.channels);
  const int channels = static_cast<int>(std::min(wanted, std::max<std::uint64_t>(1, elements)));
  for (int channel = 0; channel < channels; ++channel)
    plans_.push_back(plan_channel(comm, nodes, channel, channels));
}

Textbook::ChannelPlan Textbook::plan_channel(const Communicator& comm, const Nodes& nodes,
                                             int channel, int channels) const {
  const Collective& c = collective();
  const std::uint64_t size = c.size;
  const std::uint64_t elements = c.func == Func::barrier ? 0 : layout_->longest();

  ChannelPlan plan;
  ChannelView& view = plan.view;
  view.size = c.size;
  view.order = Order(nodes, channel);
  view.ranks_a_node = nodes.ranks_each();
  view.root = view.order.position_of(c.root);
  if (c.func == Func::send_recv && c.size > 1) view.target = view.order.position_of(c.target);
  view.share = near_equal(elements, channel, channels);
  view.block_stride = elements;
  view.piece_elements = view.share.count / size;
  view.long_pieces = view.share.count % size;
  if (is_ragged(c.func)) view.ragged = make_ragged(view.order, channel, channels);

  plan.in_parts = form_.pace == Form::Pace::eager;
  if (comm.slice_bytes > 0 && form_.pieces == nullptr) {
    const std::uint64_t largest =
        form_.unit == Form::Unit::piece ? view.piece(0).count : view.share.count;
    const std::uint64_t elements_per_slice =
        std::max<std::uint64_t>(1, comm.slice_bytes / c.element_bytes);
    const std::uint64_t slices = (largest + elements_per_slice - 1) / elements_per_slice;
    demand(slices <= std::numeric_limits<std::int32_t>::max(),
           "slices are too small to count; raise their size");
    if (slices > 1) {
      plan.slices = static_cast<std::uint32_t>(slices);
      plan.slice_elements = elements_per_slice;
      plan.in_parts |= form_.pace == Form::Pace::uneven;
    }
  }
  const bool unbounded = comm.flow_control.credits == 0 || form_.one_way;
  plan.window = unbounded ? plan.slices : std::min(comm.flow_control.credits, plan.slices);
  return plan;
}

std::shared_ptr<const Ragged> Textbook::make_ragged(const Order& order, int channel,
                                                    int channels) const {
  auto ragged = std::make_shared<Ragged>(Ragged{layout_, channel, channels, {0}});
  if (collective().func != Func::all_gather_v) return ragged;
  for (int p = 0; p < collective().size; ++p) {
    const GroupRank rank = order.rank_at(p);
    const std::uint64_t share = ragged->share_of(layout_->work(rank, rank)).count;
    ragged->before.push_back(ragged->before.back() + share);
  }
  return ragged;
}

int Textbook::actors(GroupRank) const { return static_cast<int>(plans_.size()); }

Actor Textbook::actor(GroupRank r, int a) const {
  const ChannelPlan& plan = plans_[a];
  const int rounds = form_.rounds(plan.view, plan.view.order.position_of(r));
  if (rounds == 0) return {a, 0};
  if (plan.in_parts) return {a, (plan.slice_elements > 0 ? 4 : 2) * rounds};
  return {a, plan.window < plan.slices ? 2 * rounds + 1 : rounds + 1};
}

int Textbook::receiver(GroupRank, int channel, GroupRank) const { return channel; }

Step Textbook::step(GroupRank r, int a, int k) const {
  const ChannelPlan& plan = plans_[a];
  const int position = plan.view.order.position_of(r);
  if (plan.in_parts) return part_step(plan, position, k);
  return plan.window < plan.slices ? windowed_step(plan, position, k)
                                   : fused_step(plan, position, k);
}

// If a position forwards every block it receives, only the blocks and on_recv change from step to
// step.
void Textbook::next_step(GroupRank r, int a, int k, Step& step) const {
  const ChannelPlan& plan = plans_[a];
  const int position = plan.view.order.position_of(r);
  const bool passes_on = form_.passes_on && !plan.in_parts && plan.window == plan.slices;
  if (!passes_on || k < 2 || k >= form_.rounds(plan.view, position))
    return Schedule::next_step(r, a, k, step);
  const Transfer in = form_.recv(plan.view, position, k - 1);
  assign(step.recv, in.block);
  assign(step.send, in.block);
  step.on_recv = in.combine;
}

Step Textbook::fused_step(const ChannelPlan& plan, int position, int k) const {
  const ChannelView& view = plan.view;
  Step step;
  step.scattered = form_.pieces != nullptr;
  step.slices = plan.slices;
  step.slice_elements = plan.slice_elements;
  const bool sends = k<form_.rounds(view, position), receives = k> 0;
  if (receives) {
    const Transfer in = form_.recv(view, position, k - 1);
    if (in.peer != kNoRank) {
      step.recv_from.push(view.order.rank_at(in.peer));
      assign(step.recv, in.block);
      step.on_recv = in.combine;
    }
  }
  if (sends && receives && form_.passes_on) {
    step.send_to.push(view.order.rank_at(form_.passes_on(view, position)));
    assign(step.send, step.recv);
  } else if (sends) {
    const Transfer out = form_.send(view, position, k);
    if (out.peer != kNoRank) {
      step.send_to.push(view.order.rank_at(out.peer));
      assign(step.send, out.block);
    }
  }
  return step;
}

Step Textbook::windowed_step(const ChannelPlan& plan, int position, int k) const {
  // Even steps receive the end of round k/2 - 1 and send the begin of round k/2; odd steps stay in
  // round k/2.
  const bool between_rounds = k % 2 == 0;
  const std::uint32_t rest = plan.slices - plan.window;
  Step step = fused_step(plan, position, k / 2);
  if (between_rounds) {
    step.slices = plan.window;
    step.recv = slices_of(step.recv, plan.slice_elements, rest, plan.window);
    step.send = slices_of(step.send, plan.slice_elements, 0, plan.window);
    return step;
  }
  const Step next = fused_step(plan, position, k / 2 + 1);
  step.slices = rest;
  step.recv_from = next.recv_from;
  step.on_recv = next.on_recv;
  step.recv = slices_of(next.recv, plan.slice_elements, 0, rest);
  step.send = slices_of(step.send, plan.slice_elements, plan.window, rest);
  return step;
}

// Maps step k to a round and to one of its four parts.
Step Textbook::part_step(const ChannelPlan& plan, int position, int k) const {
  enum { first, both, rest_out, rest_in };
  const int rounds = form_.rounds(plan.view, position);
  const bool cut = plan.slice_elements > 0, eager = form_.pace == Form::Pace::eager;
  const int parts = cut ? 4 : 2;
  int round = k / parts, part = k % parts;
  if (eager && k < rounds) {
    round = k, part = 0;
  } else if (eager) {
    round = (k - rounds) / (parts - 1), part = 1 + (k - rounds) % (parts - 1);
  }
  if (!cut && part == 1) part = rest_in;

  const auto slices = [&](const Transfer& t) -> std::uint64_t {
    if (t.peer == kNoRank) return 0;
    if (!cut) return 1;
    const std::uint64_t n = (t.block.count + plan.slice_elements - 1) / plan.slice_elements;
    return std::max<std::uint64_t>(1, n);
  };
  const Transfer in = form_.recv(plan.view, position, round);
  const Transfer out = form_.send(plan.view, position, round);
  const std::uint64_t coming = slices(in), going = slices(out);
  const std::uint64_t ahead = std::min<std::uint64_t>(going, plan.window);
  const std::uint64_t together = std::min(going - ahead, coming);

  Step step;
  step.slice_elements = plan.slice_elements;
  const auto receives = [&](std::uint64_t begin, std::uint64_t end) {
    step.slices = static_cast<std::uint32_t>(end - begin);
    if (begin == end) return;
    step.recv_from.push(plan.view.order.rank_at(in.peer));
    step.recv = cut ? slices_of(in.block, plan.slice_elements, begin, end - begin) : in.block;
    step.on_recv = in.combine;
  };
  const auto sends = [&](std::uint64_t begin, std::uint64_t end) {
    step.slices = static_cast<std::uint32_t>(end - begin);
    if (begin == end) return;
    step.send_to.push(plan.view.order.rank_at(out.peer));
    step.send = cut ? slices_of(out.block, plan.slice_elements, begin, end - begin) : out.block;
  };
  if (part == first) sends(0, ahead);
  if (part == both) receives(0, together), sends(ahead, ahead + together);
  if (part == rest_out) sends(ahead + together, going);
  if (part == rest_in) receives(together, coming);
  return step;
}

void Textbook::pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const {
  if (form_.pieces == nullptr) return;
  const ChannelView& view = plans_[a].view;
  out.clear();
  const int round = way == Way::recv ? k - 1 : k;
  // This step has no message in this direction.
  if (round < 0 || round >= form_.rounds(view, view.order.position_of(r))) return;
  form_.pieces(view, view.order.position_of(r), round, way, out);
}

}  // namespace ghostrank
