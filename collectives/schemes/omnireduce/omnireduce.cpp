#include "collectives/schemes/omnireduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "collectives/schemes/omnireduce/agents.h"
#include "switch/wire/sparse.h"

namespace ghostrank {
namespace {

using omnireduce::Setup;

// Of a greeting: round -1, which is before a rank's first, and block 0.
constexpr std::array<std::byte, omnireduce::kPacketWords> kGreetingWords{
    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};

class OmniReduce final : public Ends {
 public:
  explicit OmniReduce(const Setup& setup) : Ends(setup.ranks), setup_(setup) {}

  std::vector<Helper> helpers() const override {
    if (options().in_switch)
      return {{.kind = PartyKind::network_switch, .near = 0, .slots = options().slots}};
    return std::vector<Helper>(options().aggregators, {PartyKind::aggregator});
  }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    const bool helps = party >= size();
    if (options().packets)
      return helps ? omnireduce::packet_aggregator(setup_)
                   : omnireduce::packet_member(setup_, party);
    return helps ? omnireduce::reliable_aggregator(setup_) : omnireduce::reliable_member(setup_);
  }
  bool exact() const override { return false; }
  std::vector<Edge> traffic(const Call& call) const override;
  std::uint64_t overhead_bytes() const override {
    return options().packets ? omnireduce::kPacketOverhead : omnireduce::kMessageOverhead;
  }
  const WireFormat* wire_format() const override {
    return options().packets ? &omnireduce::packet_format(options().in_switch) : nullptr;
  }
  std::optional<SwitchService> switch_service() const override {
    if (!options().in_switch) return std::nullopt;
    SwitchService service{switchml::kSparsePort,
                          options().slots,
                          options().block,
                          {Func::all_reduce},
                          {Func::all_reduce},
                          {{}},
                          {},
                          "omnireduce"};
    service.rails[0].resize(size());
    std::iota(service.rails[0].begin(), service.rails[0].end(), 0);
    for (int slot = 0; slot < options().slots; ++slot)
      service.greeting.push_back({.index = setup_.owner_of(slot).index | omnireduce::kSetBit,
                                  .type = DataType::int32,
                                  .elements = static_cast<std::uint64_t>(options().block),
                                  .words = kGreetingWords});
    return service;
  }
  std::string_view p4_program() const override {
    return options().in_switch ? "switch/p4/dpdk.p4" : "";
  }
  Survives survives() const override {
    const bool all = options().packets;
    return {all, all, all, all, options().in_switch};
  }
  std::string refuses(const Call& call) const override {
    if (options().in_switch && call.type != DataType::int32) return "a switch adds int32 only";
    const std::uint64_t blocks = setup_.shape().blocks_of(call.collective.count);
    if (blocks < setup_.shape().first_end()) return "";
    return "its blocks are numbered with 32 bits; make them larger (omnireduce.block)";
  }

 private:
  const OmniReduceOptions& options() const { return setup_.options; }

  const Setup setup_;
};

// Mean blocks and notes of one slot: `share` of the blocks behind a column's first one travel, in
// rounds in which some rank has a block.
struct SlotTraffic {
  double blocks = 0, notes = 0;
};

SlotTraffic slot_traffic(const BlockShape& shape, int slot, std::uint64_t blocks, double share,
                         double somewhere) {
  SlotTraffic traffic;
  double rounds = 0;  // of the longest column, behind the first
  for (int c = 0; c < shape.columns_in(slot, blocks); ++c) {
    const std::uint64_t first = static_cast<std::uint64_t>(slot) * shape.columns + c;
    const auto later = static_cast<double>((blocks - first - 1) / shape.stride());
    traffic.blocks += 1 + later * share;
    rounds = std::max(rounds, later * somewhere);
  }
  const double silent = somewhere > 0 ? std::pow(1 - share / somewhere, shape.columns) : 1;
  traffic.notes = traffic.blocks > 0 ? 1 + rounds * (1 - silent) : 0;
  return traffic;
}

std::vector<Ends::Edge> OmniReduce::traffic(const Call& call) const {
  const BlockShape shape = setup_.shape();
  const std::uint64_t blocks = shape.blocks_of(call.collective.count);
  // Every column's first block travels; of those behind it, as many as are nonzero.
  const auto [d, u] = call.sparsity.means(std::uint64_t{shape.stride()} * shape.block,
                                          call.collective.count, size());
  std::vector<SlotTraffic> up(options().aggregators), down = up;
  for (int slot = 0; slot < shape.slots && shape.columns_in(slot, blocks) > 0; ++slot) {
    const std::size_t aggregator = setup_.owner_of(slot).aggregator - size();
    const SlotTraffic sent = slot_traffic(shape, slot, blocks, d, u);
    const SlotTraffic told = slot_traffic(shape, slot, blocks, u, u);
    up[aggregator].blocks += sent.blocks;
    up[aggregator].notes += options().packets ? told.notes : sent.notes;
    down[aggregator].blocks += told.blocks;
    down[aggregator].notes += told.notes;
  }
  const double block_bytes = static_cast<double>(options().block) * bytes_of(call.type);
  const auto edge = [&](GroupParty from, GroupParty to, const SlotTraffic& sum) -> Edge {
    const double words = options().packets ? omnireduce::kPacketWords * sum.notes : 4 * sum.blocks;
    const double bytes =
        block_bytes * sum.blocks + words + static_cast<double>(overhead_bytes()) * sum.notes;
    return {from, to, static_cast<std::uint64_t>(std::llround(bytes)),
            static_cast<std::uint64_t>(std::llround(sum.notes)),
            options().packets ? Carriage::packet : Carriage::reliable};
  };
  std::vector<Edge> edges;
  // Ranks send each other nothing while their switch answers, but a network must know the edges.
  for (GroupRank r = 0; options().in_switch && r < size(); ++r)
    for (GroupRank other = 0; other < size(); ++other)
      if (other != r) edges.push_back({r, other});
  for (GroupRank r = 0; r < size(); ++r)
    for (int a = 0; a < options().aggregators; ++a) {
      const std::size_t i = a;
      if (up[i].blocks == 0) continue;
      edges.push_back(edge(r, size() + a, up[i]));
      edges.push_back(edge(size() + a, r, down[i]));
    }
  return edges;
}

void require(bool right, const std::string& what) {
  if (!right) throw std::invalid_argument(what);
}

}  // namespace

std::unique_ptr<Ends> omnireduce_ends(int ranks, const OmniReduceOptions& options) {
  constexpr int kMostSlots = 1 << 15;  // 15 bits of a packet
  require(options.aggregators >= 1, "OmniReduce needs an aggregator");
  require(options.block >= 1, "a block has at least one element");
  require(options.slots >= 1 && options.slots <= kMostSlots,
          "an aggregator has 1 to " + std::to_string(kMostSlots) + " slots");
  require(options.first_slot >= 0 && options.first_slot <= kMostSlots - options.slots,
          "its slots begin at " + std::to_string(options.first_slot) + ", and packets number " +
              std::to_string(kMostSlots) + " of all groups together; use fewer (switch.slots)");
  require(options.columns >= 1 && static_cast<std::size_t>(options.columns) * 4 <= kMostWords,
          "a message has 1 to " + std::to_string(kMostWords / 4) + " blocks");
  require(!options.packets || options.columns == 1,
          "a packet has one block, so its elements are those of a block");
  require(!options.in_switch || (options.packets && options.aggregators == 1),
          "a switch takes packets, and is one");
  require(!options.in_switch || ranks <= kMostSwitchRanks,
          "a switch serves at most " + std::to_string(kMostSwitchRanks) + " ranks");
  return std::make_unique<OmniReduce>(Setup{ranks, options});
}

}  // namespace ghostrank
