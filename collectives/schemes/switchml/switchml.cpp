#include "collectives/schemes/switchml.h"

#include <algorithm>
#include <array>
#include <cmath>
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

// Packets of a call between a worker, or a rack's switch, and the switch above it.
struct CallPackets {
  std::uint64_t all = 0, full_up = 0, full_down = 0;
};

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
    for (int rack = 0; rack < layout_->racks.racks; ++rack) {
      const int begin = layout_->racks.begin(rack), end = layout_->racks.end(rack);
      Alone of_rack;
      for (int w = begin; w < end; ++w) {
        add_pair(edges, workers[w], layout_->racks.leaf(rail, rack), call, share, alone[w]);
        of_rack.chunks += alone[w].chunks;
        of_rack.zeros += alone[w].zeros;
      }
      if (layout_->racks.two_levels())
        add_pair(edges, layout_->racks.leaf(rail, rack), layout_->racks.root(rail), call, share,
                 of_rack);
    }
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

  // `alone`: of the parties below `lower`.
  void add_pair(std::vector<Edge>& edges, GroupParty lower, GroupParty upper, const Call& call,
                const RailShare& share, const Alone& alone) const {
    const std::uint64_t chunks = share.chunks();
    CallPackets p{packets_of(call, share), chunks + alone.zeros, alone.chunks + alone.zeros};
    if (share.reach() == Reach::everyone) p.full_up = p.full_down = p.all;
    if (share.reach() == Reach::from_one) p = {p.all, alone.chunks, chunks - alone.chunks};
    const auto bytes = [&](std::uint64_t full) {
      return p.all * switchml::head_bytes(share.reach()) + full * 4 * layout_->options.elements;
    };
    if (p.all == 0) return;
    edges.push_back({lower, upper, bytes(p.full_up), p.all, Carriage::packet});
    edges.push_back({upper, lower, bytes(p.full_down), p.all, Carriage::packet});
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
