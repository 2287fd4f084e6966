// An all-gather-v on NCCL: PyTorch makes it of one broadcast per rank, all in one ncclGroup, which
// NCCL plans together. Blocks without elements are not sent. Derived from NCCL's source.
//
//   2.28   each is a broadcast; the plan of the group (group.h) gives it channels, and those that
//          share a channel follow one another on it
//
//            channel 0   A A A B B      a letter: a chunk of that rank's block, around the ring
//            channel 1   B B C C C
//
//   2.30   broadcasts of several roots are one kernel (scheduler/allgatherv_sched.cc, device/
//          all_gather_v.h): every channel has a part of every block, cut at 256 bytes, and chunks
//          of all blocks take turns, a rank's own first, then that of the rank before it in the
//          ring. One protocol for all: that of an all-gather of blocks as long as the longest
//
//            channel 0   A C B A C B C   at rank A, behind C, behind B in the ring; C is longest
//
// Both in one form: on a channel, turns follow one another; in a turn the chunks of some blocks
// alternate. In 2.28 a turn has one block, in 2.30 all that have chunks left.
//
// Cost: every block passes n-1 ranks, a message per chunk.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "collectives/generic/textbook.h"
#include "collectives/layout.h"
#include "collectives/nccl/group.h"
#include "collectives/nccl/machine/graphs.h"

namespace ghostrank {
namespace {

// As many broadcasts as one kernel of 2.30 takes on every GPU that is modelled.
constexpr std::size_t kMostOfKernel = 169;
constexpr std::uint64_t kLineOfPart = 256;  // bytes

// A channel's part of a block, in elements of the block.
struct BlockPart {
  GroupRank root = kNoRank;
  std::uint64_t offset = 0, count = 0, chunk = 1;
  std::uint64_t chunks() const { return (count + chunk - 1) / chunk; }
};

// The steps from `begin` on: chunks of some blocks by turns, from chunk `first` on.
struct Turn {
  int begin = 0;
  std::uint64_t first = 0;
  std::vector<int> parts;  // by the positions of their roots in the ring
};

struct BroadcastChannel {
  int channel = 0;
  std::vector<BlockPart> parts;
  std::vector<int> positions;  // of the parts' roots
  std::vector<Turn> turns;
  int steps = 0;
};

class NcclBroadcasts final : public Schedule {
 public:
  NcclBroadcasts(const Collective& c, NcclPlan plan, std::vector<BroadcastChannel> channels)
      : Schedule(c, nccl_flow_control(NcclAlgorithm::ring, Func::broadcast, plan.task.protocol),
                 plan.task.protocol),
        plan_(std::move(plan)),
        layout_(c),
        channels_(std::move(channels)) {
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      rings_.emplace_back(plan_.nodes, *plan_.node, channels_[i].channel);
      actor_of_[channels_[i].channel] = static_cast<int>(i);
    }
    set_played("broadcasts/" + std::string(name_of(plan_.task.protocol)));
  }

  int actors(GroupRank) const override { return static_cast<int>(channels_.size()); }
  Actor actor(GroupRank, int a) const override {
    const BroadcastChannel& channel = channels_[a];
    return {channel.channel, channel.steps};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank) const override {
    const auto found = actor_of_.find(channel);
    return found == actor_of_.end() ? actors(dst) : found->second;  // actors(): none
  }
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    return nccl_nic_of_ring(plan_, from, to, channel, way);
  }
  int nics() const override { return plan_.node->nics; }

 private:
  NcclPlan plan_;
  Layout layout_;
  std::vector<BroadcastChannel> channels_;
  std::vector<NcclRing> rings_;  // by actor
  std::map<int, int> actor_of_;  // by channel
};

Step NcclBroadcasts::step(GroupRank r, int a, int k) const {
  const BroadcastChannel& channel = channels_[a];
  const NcclRing& ring = rings_[a];
  const int size = collective().size, position = ring.position_of(r);
  const Turn& turn =
      *std::prev(std::upper_bound(channel.turns.begin(), channel.turns.end(), k,
                                  [](int step, const Turn& other) { return step < other.begin; }));
  // A rank begins with its own block, or that of the next rank before it.
  const auto blocks = static_cast<int>(turn.parts.size());
  const auto behind =
      std::upper_bound(turn.parts.begin(), turn.parts.end(), position,
                       [&](int at, int part) { return at < channel.positions[part]; });
  const auto begin = static_cast<int>(behind - turn.parts.begin()) - 1 + blocks;
  const int index = (begin - (k - turn.begin) % blocks + blocks) % blocks;
  const BlockPart& part = channel.parts[turn.parts[index]];
  const std::uint64_t chunk = (turn.first + (k - turn.begin) / blocks) * part.chunk;
  Block block = layout_.work(r, part.root);
  block.offset += part.offset + chunk;
  block.count = std::min(part.chunk, part.count - chunk);

  Step step;
  if (r != part.root) {
    step.recv_from = ring.rank_at((position + size - 1) % size);
    step.recv = block;
  }
  const GroupRank next = ring.rank_at((position + 1) % size);
  if (next != part.root) {
    step.send_to = next;
    step.send = block;
  }
  return step;
}

// The blocks that are sent, as broadcasts.
std::vector<Collective> broadcasts_of(const Collective& c) {
  std::vector<Collective> out;
  for (GroupRank root = 0; root < c.size; ++root) {
    const std::uint64_t count = (*c.counts)[root];
    if (count == 0 || c.size < 2) continue;
    Collective one = c;
    one.func = Func::broadcast;
    one.count = count;
    one.root = root;
    one.counts = nullptr;
    out.push_back(std::move(one));
  }
  return out;
}

// Fills in the channel's positions and turns, and counts its steps.
void finish(BroadcastChannel& channel, const NcclPlan& plan, bool take_turns) {
  const NcclRing ring(plan.nodes, *plan.node, channel.channel);
  for (const BlockPart& part : channel.parts)
    channel.positions.push_back(ring.position_of(part.root));
  const auto chunks_of = [&](int part) { return channel.parts[part].chunks(); };
  std::vector<int> left(channel.parts.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int>(i);
  const auto add = [&](std::uint64_t first, std::uint64_t end, std::vector<int> parts) {
    const auto steps = static_cast<int>(end - first) * static_cast<int>(parts.size());
    channel.turns.push_back({channel.steps, first, std::move(parts)});
    channel.steps += steps;
  };
  if (!take_turns) {
    for (const int part : left) add(0, chunks_of(part), {part});
    return;
  }
  std::sort(left.begin(), left.end(),
            [&](int a, int b) { return channel.positions[a] < channel.positions[b]; });
  for (std::uint64_t first = 0; !left.empty();) {
    std::uint64_t end = chunks_of(left.front());
    for (const int part : left) end = std::min(end, chunks_of(part));
    add(first, end, left);
    first = end;
    std::erase_if(left, [&](int part) { return chunks_of(part) == end; });
  }
}

using Channels = std::map<int, BroadcastChannel>;

Channels one_by_one(const NcclGroupPlan& group, std::span<const Collective> calls) {
  Channels channels;
  for (std::size_t i = 0; i < group.plans.size(); ++i)
    for (const NcclChannelPart& part : nccl_channel_parts(group.plans[i])) {
      if (part.count == 0) continue;
      BroadcastChannel& channel = channels[part.channel];
      channel.channel = part.channel;
      channel.parts.push_back({calls[group.order[i]].root, part.offset, part.count, part.chunk});
    }
  return channels;
}

// A block has a part on each of the channels that the plan may use.
Channels in_turns(const NcclPlan& plan, std::span<const Collective> calls) {
  Channels channels;
  const std::uint64_t shares = plan.task.max_channels;
  for (const Collective& call : calls) {
    const std::uint64_t bytes = call.count * call.element_bytes;
    const std::uint64_t share = (bytes + shares - 1) / shares;
    const auto cut = [&](std::uint64_t i) {
      return std::min(bytes, (i * share + kLineOfPart - 1) / kLineOfPart * kLineOfPart) /
             call.element_bytes;
    };
    for (std::uint64_t i = 0; i < shares; ++i) {
      const std::uint64_t from = cut(i), to = cut(i + 1);
      if (to == from) continue;
      BroadcastChannel& channel = channels[static_cast<int>(i)];
      channel.channel = static_cast<int>(i);
      channel.parts.push_back({call.root, from, to - from, plan.chunk_elements(to - from)});
    }
  }
  return channels;
}

// The ring's plan, with the protocol and the channels that NCCL chooses for an all-gather; NCCL
// ignores the algorithm that this choice names.
NcclPlan plan_of_turns(NcclVersion version, const Collective& c, std::span<const Collective> calls,
                       const Communicator& comm) {
  if (calls.size() > kMostOfKernel)
    throw std::invalid_argument("so many blocks may take several launches, which are not modelled");
  Collective gather = c;
  gather.func = Func::all_gather;
  gather.counts = nullptr;
  for (const Collective& call : calls) gather.count = std::max(gather.count, call.count);
  NcclPlan plan = nccl_undecided(version, gather, comm);
  NcclTunerInput input = nccl_tuner_input(plan, comm);
  input.nvls = false;
  const NcclChoice choice = nccl_choose(input);
  plan.task.func = Func::broadcast;
  plan.task.protocol = choice.protocol;
  plan.task.max_channels = comm.max_channels > 0 ? comm.max_channels : choice.max_channels;
  return plan;
}

std::unique_ptr<Schedule> made(const Collective& c, NcclPlan plan, Channels channels,
                               bool take_turns) {
  std::vector<BroadcastChannel> out;
  for (auto& [number, channel] : channels) {
    finish(channel, plan, take_turns);
    out.push_back(std::move(channel));
  }
  return std::make_unique<NcclBroadcasts>(c, std::move(plan), std::move(out));
}

}  // namespace

std::unique_ptr<Schedule> nccl_broadcasts(NcclVersion version, const Collective& c,
                                          const Communicator& comm) {
  check_arguments(c, comm);
  const std::vector<Collective> calls = broadcasts_of(c);
  if (calls.empty()) {
    Collective nothing = c;
    nothing.func = Func::broadcast;
    nothing.counts = nullptr;
    return made(c, nccl_plan(version, NcclAlgorithm::ring, nothing, comm), {}, false);
  }
  if (version == NcclVersion::v2_30 && calls.size() > 1) {
    NcclPlan plan = plan_of_turns(version, c, calls, comm);
    Channels channels = in_turns(plan, calls);
    return made(c, std::move(plan), std::move(channels), true);
  }
  NcclGroupPlan group = nccl_group_plan(version, calls, comm);
  for (const NcclPlan& plan : group.plans)
    if (plan.task.protocol != group.plans.front().task.protocol)
      throw std::invalid_argument(
          "blocks of such different sizes go by several protocols in one group, which is not "
          "modelled; choose one with the environment's NCCL_PROTO");
  Channels channels = one_by_one(group, calls);
  return made(c, std::move(group.plans.front()), std::move(channels), false);
}

}  // namespace ghostrank
