#include "collectives/schemes/switchml.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/schemes/shared/numbers.h"
#include "collectives/schemes/switchml/agents.h"
#include "collectives/schemes/switchml/packets.h"
#include "switch/quantise.h"
#include "switch/window.h"
#include "switch/wire/switchml.h"

namespace ghostrank {
namespace switchml {

std::uint64_t Layout::per_chunk(const Call& call) const {
  const std::uint64_t elements = options.elements;
  return reduces(call.collective.func) ? elements : elements * 4 / bytes_of(call.type);
}

bool Layout::needs_exponents(const Call& call) const {
  return reduces(call.collective.func) && is_float(call.type);
}

}  // namespace switchml

namespace {

using switchml::Layout, switchml::Window;

constexpr std::array kServed{Func::all_reduce, Func::reduce_scatter, Func::all_gather,
                             Func::broadcast, Func::reduce};

constexpr std::uint32_t kGreetingJob = 0xff;  // far from the first calls' numbers

// Words of a greeting: packet number -1, before the first call's numbers, so that a late greeting
// never counts as new.
constexpr std::array<std::byte, 6> kGreetingWords{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                                  std::byte{0xff}};

// Packets with elements that some parties give or take alone: chunks, and zeros before them.
struct Alone {
  std::uint64_t chunks = 0, zeros = 0;
};

class SwitchMl final : public MemberEnds {
 public:
  SwitchMl(int ranks, std::shared_ptr<const Layout> layout)
      : MemberEnds(ranks, layout, switchml::kOverhead), layout_(std::move(layout)) {}

  std::vector<Helper> helpers() const override {
    return layout_->racks.helpers(layout_->rails, layout_->options.slots);
  }

  const WireFormat* wire_format() const override { return &switchml::packets(); }
  // The greeting is a round in set 0, and one in set 1: after it every worker has its mark in set 1
  // and none in set 0, so that set 0 is free for the first chunk in each slot. A guarded switch
  // that holds later rounds, of another run, does not answer; in set 0 it may hold some alone,
  // which the first chunks would be taken for.
  std::optional<SwitchService> switch_service() const override {
    if (layout_->racks.racks == 0) return std::nullopt;
    const SwitchMlOptions& options = layout_->options;
    SwitchService service{switchml::kUdpPort,
                          options.slots,
                          options.elements,
                          {Func::all_reduce},
                          {kServed.begin(), kServed.end()},
                          {},
                          {}};
    for (int rail = 0; rail < layout_->rails.rails(); ++rail)
      service.rails.push_back(layout_->rails.workers(rail));
    for (const unsigned set : {0u, unsigned{switchml::kSetBit}})
      for (int slot = 0; slot < options.slots; ++slot)
        service.greeting.push_back({.tag = static_cast<std::uint8_t>(Reach::everyone),
                                    .call = kGreetingJob,
                                    .index = (options.first_slot + slot) | set,
                                    .type = DataType::int32,
                                    .elements = static_cast<std::uint64_t>(options.elements),
                                    .words = kGreetingWords});
    return service;
  }
  std::string_view p4_program() const override { return "switch/p4/dpdk.p4"; }
  Survives survives() const override {
    const bool guard = layout_->options.guard;
    return {true, true, true, guard, guard};
  }

  std::string refuses(const Call& call) const override {
    const Func func = call.collective.func;
    if (!has_reach(func)) return "SwitchML has no " + std::string(name_of(func));
    if (!reduces(func) || call.type == DataType::int32 || is_float(call.type)) return "";
    return "a SwitchML switch adds int32, and floats as int32 with a shared exponent";
  }

  double error_bound(const Call& call, double largest) const override {
    if (!layout_->needs_exponents(call) || layout_->racks.racks == 0) return 0;
    const Rails& rails = layout_->rails;
    std::size_t local = 1;  // the most ranks on a node
    for (int node = 0; node < rails.nodes(); ++node)
      local = std::max(local, rails.on_node(node).size());
    const double of_node = std::max(largest * static_cast<double>(local), 0x1p-100);
    const int exponent =
        std::clamp(std::ilogb(of_node) + 1, switchml::kLeastExponent, switchml::kMostExponent);
    // A node's sum of m floats is rounded m - 1 times.
    const double inside = static_cast<double>(local - 1) * rails.nodes() * of_node * 0x1p-24;
    return switchml::error_bound(exponent, rails.nodes()) + inside;
  }

 private:
  std::unique_ptr<WorkerPart> part(GroupRank worker) const override {
    return part_of(layout_, worker);
  }
  std::unique_ptr<Agent> helper(GroupParty party, Site*) const override {
    return switch_agent(layout_, party);
  }

  void add_outside(std::vector<Edge>& edges, const Call& call, int rail,
                   const RailShare& share) const override {
    const auto& workers = layout_->rails.workers(rail);
    const auto nodes = static_cast<int>(workers.size());
    std::vector<Alone> alone(nodes);
    if (share.reach() != Reach::everyone)
      for (GroupRank r = 0; r < size(); ++r)
        alone[layout_->rails.node_of(r)].chunks += share.chunks_of(r);
    if (share.reach() == Reach::to_one)
      for (std::uint64_t p = share.chunks(); p < packets_of(call, share); ++p)
        ++alone[(p - share.chunks()) % alone.size()].zeros;
    if (layout_->options.guard) add_between_workers(edges, workers);
    const Racks& racks = layout_->racks;
    std::vector<GroupParty> leaves;
    std::vector<Alone> of_leaves;
    for (int rack = 0; rack < racks.racks; ++rack) {
      const int begin = racks.begin(rack), end = racks.end(rack);
      leaves.push_back(racks.leaf(rail, rack));
      add_around(edges, leaves.back(), std::span(workers).subspan(begin, end - begin),
                 std::span(alone).subspan(begin, end - begin), call, share);
      Alone& sum = of_leaves.emplace_back();
      for (int w = begin; w < end; ++w) sum.chunks += alone[w].chunks, sum.zeros += alone[w].zeros;
    }
    if (racks.two_levels()) add_around(edges, racks.root(rail), leaves, of_leaves, call, share);
  }

  // Workers send each other nothing while their switch answers, but a network must know the edges.
  static void add_between_workers(std::vector<Edge>& edges, const std::vector<GroupRank>& workers) {
    for (std::size_t w = 0; w < workers.size(); ++w) {
      edges.push_back({workers[w], workers[(w + 1) % workers.size()]});
      if (w == 0) continue;
      edges.push_back({workers[w], workers[0]});
      edges.push_back({workers[0], workers[w]});
    }
  }

  std::uint64_t packets_of(const Call& call, const RailShare& share) const {
    return Window::packets_of(share.chunks(), layout_->needs_exponents(call),
                              layout_->options.slots);
  }

  // What a switch and the parties right below it send each other. `alone`: of these, or of those
  // below them.
  void add_around(std::vector<Edge>& edges, GroupParty upper, std::span<const GroupParty> children,
                  std::span<const Alone> alone, const Call& call, const RailShare& share) const {
    const std::uint64_t packets = packets_of(call, share);
    if (packets == 0) return;
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::uint64_t full = share.reach() == Reach::everyone ? packets
                                 : share.reach() == Reach::to_one ? share.chunks() + alone[i].zeros
                                                                  : alone[i].chunks;
      edges.push_back(
          {children[i], upper, bytes_of_packets(share, packets, full), packets, Carriage::packet});
    }
    add_down(edges, upper, children, alone, packets, share);
  }

  // A round's elements go to one child and credits to the others, or the other way around; where no
  // child has the worker of the round, and where everyone takes all, one packet goes to all.
  void add_down(std::vector<Edge>& edges, GroupParty from, std::span<const GroupParty> children,
                std::span<const Alone> alone, std::uint64_t packets, const RailShare& share) const {
    std::uint32_t copies = 0;
    const auto send = [&](std::uint64_t rounds, bool full, const auto& gets) {
      if (rounds == 0) return;
      ++copies;
      const std::uint64_t bytes = bytes_of_packets(share, rounds, full ? rounds : 0);
      for (const GroupParty child : children)
        if (gets(child)) edges.push_back({from, child, bytes, rounds, Carriage::packet, copies});
    };
    const bool to_one = share.reach() == Reach::to_one;
    std::uint64_t of_nobody = packets;
    for (std::size_t i = 0; i < children.size() && share.reach() != Reach::everyone; ++i) {
      const std::uint64_t rounds = alone[i].chunks + alone[i].zeros;
      of_nobody -= rounds;
      send(rounds, to_one, [&](GroupParty child) { return child == children[i]; });
      send(rounds, !to_one, [&](GroupParty child) { return child != children[i]; });
    }
    send(of_nobody, !to_one, [](GroupParty) { return true; });
  }

  // Bytes of so many packets, of which `full` have elements.
  std::uint64_t bytes_of_packets(const RailShare& share, std::uint64_t packets,
                                 std::uint64_t full) const {
    return packets * switchml::head_bytes(share.reach()) + full * 4 * layout_->options.elements;
  }

  std::shared_ptr<const Layout> layout_;
};

}  // namespace

std::unique_ptr<Ends> switchml_ends(int ranks, const SwitchMlOptions& options,
                                    const Communicator& comm) {
  if (!switchml::valid_elements(options.elements))
    throw std::invalid_argument("packets of SwitchML have 32, 64 or 256 elements");
  if (options.slots < 1 || options.first_slot < 0 ||
      options.first_slot + options.slots > switchml::kMaxSlots)
    throw std::invalid_argument("a SwitchML switch has 1 to " +
                                std::to_string(switchml::kMaxSlots) + " slots");
  if (const int workers = Rails(ranks, comm).nodes(); workers > kMostInRacks)
    throw std::invalid_argument(
        "it has " + std::to_string(workers) + " workers on a rail, and two levels of switches of " +
        std::to_string(switchml::kMaxWorkers) + " serve at most 1,024; use smaller groups");
  return std::make_unique<SwitchMl>(ranks, std::make_shared<Layout>(ranks, options, comm));
}

}  // namespace ghostrank
