#include "collectives/schemes/omnireduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

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
    // In both sets, since a switch that holds rounds of another run may do so in one.
    for (const unsigned set : {0u, unsigned{omnireduce::kSetBit}})
      for (int slot = 0; slot < options().slots; ++slot)
        service.greeting.push_back({.index = setup_.owner_of(slot).index | set,
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

// Mean blocks and notes of one slot.
struct SlotTraffic {
  double blocks = 0, notes = 0;
};

// By row of blocks, one of each column: the chance that a block behind the first row travels, and
// that some rank has it, so that its column stops there.
struct RowShares {
  std::vector<double> travels, somewhere;
};

// By round behind the first: the chance that a column's block of that round travels. The round of a
// block is the number of rows before it at which the column stops.
std::vector<double> rounds_of(const RowShares& shares, std::size_t rows) {
  constexpr double kNegligible = 1e-12;
  std::vector<double> rounds(rows), stops{1};  // stops: by number of stops so far, its chance
  std::size_t least = 0;                       // fewer are negligible
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t k = least; k < stops.size(); ++k) rounds[k] += stops[k] * shares.travels[row];
    const double somewhere = shares.somewhere[row];
    if (stops.back() * somewhere > kNegligible) stops.push_back(0);
    for (std::size_t k = stops.size(); k-- > least;)
      stops[k] = stops[k] * (1 - somewhere) + (k > least ? stops[k - 1] * somewhere : 0);
    while (least + 1 < stops.size() && stops[least] < kNegligible) ++least;
  }
  return rounds;
}

// Of the rounds behind the first, in how many on average some column's block travels.
double mean_notes(double columns, const std::vector<double>& rounds, double shorter_columns,
                  const std::vector<double>& shorter) {
  double notes = 0;
  for (std::size_t k = 0; k < rounds.size(); ++k)
    notes += 1 - std::pow(1 - rounds[k], columns) *
                     std::pow(1 - (k < shorter.size() ? shorter[k] : 0), shorter_columns);
  return notes;
}

// Traffic of slots whose blocks behind the first row travel as `shares` says, `share` of them.
// `apart`: for how many columns one counts, because neighbours may lie in one block of the tensor
// and then travel together.
class SlotTraffics {
 public:
  SlotTraffics(const BlockShape& shape, std::uint64_t blocks, double share, const RowShares& shares,
               double apart)
      : shape_(shape), blocks_(blocks), share_(share), apart_(apart) {
    if (shape.columns == 1) return;  // a round of its own for each block
    longer_ = rounds_of(shares, shares.travels.size());
    shorter_ = rounds_of(shares, shares.travels.size() - (shares.travels.empty() ? 0 : 1));
  }

  SlotTraffic of(int slot) {
    const int columns = shape_.columns_in(slot, blocks_);
    if (columns == 0) return {};
    const std::uint64_t first = static_cast<std::uint64_t>(slot) * shape_.columns;
    int longer = 0;
    double later = 0;  // blocks behind the first row
    for (int c = 0; c < columns; ++c) {
      const std::uint64_t rows = (blocks_ - first - c - 1) / shape_.stride();
      later += static_cast<double>(rows);
      longer += rows == longer_.size();
    }
    const double sent = later * share_;
    if (shape_.columns == 1) return {1 + sent, 1 + sent};
    const auto [known, fresh] = notes_.try_emplace({longer, columns - longer});
    const double apart = std::max(apart_, 1.0 / columns);
    if (fresh)
      known->second = mean_notes(longer * apart, longer_, (columns - longer) * apart, shorter_);
    return {columns + sent, 1 + known->second};
  }

 private:
  const BlockShape shape_;
  const std::uint64_t blocks_;
  const double share_, apart_;
  std::vector<double> longer_, shorter_;  // columns with a block in the last row, and without
  std::map<std::pair<int, int>, double> notes_;  // by how many columns of a slot are so
};

// How sparse blocks of `block` elements are: one is nonzero where any of the tensor's own blocks is
// that it touches. These are `least` or one more, depending on where it begins.
Sparsity of_blocks(const Sparsity& own, std::uint64_t block, int ranks) {
  const std::uint64_t least = (block - 1) / own.block + 1, rest = (block - 1) % own.block;
  const double one_more = static_cast<double>(rest - rest % std::gcd(block, own.block)) /
                          static_cast<double>(own.block);
  if (least == 1 && one_more == 0) return own;
  const auto any = [&](double share) {
    return 1 - std::pow(1 - share, least) * (1 - one_more * share);
  };
  const auto converted = [&](const Sparsity& from) {
    return Sparsity::of_means(any(from.density), any(from.union_density(ranks)), ranks,
                              std::max(block, own.block));
  };
  Sparsity sparsity = converted(own);
  if (!own.uneven) return sparsity;
  auto uneven = std::make_shared<UnevenTensor>(*own.uneven);
  uneven->between = converted(uneven->between);
  for (TensorPart& part : uneven->layout.parts) part.sparsity = converted(part.sparsity);
  sparsity.uneven = std::move(uneven);
  return sparsity;
}

std::vector<Ends::Edge> OmniReduce::traffic(const Call& call) const {
  const BlockShape shape = setup_.shape();
  const Sparsity sparsity = of_blocks(call.sparsity, shape.block, size());
  const std::uint64_t blocks = shape.blocks_of(call.collective.count);
  // Every column's first block travels; of those behind it, as many as are nonzero.
  const auto [d, u] =
      sparsity.means(std::uint64_t{shape.stride()} * shape.block, call.collective.count, size());
  RowShares of_rank, of_any;
  for (std::uint64_t row = 1; shape.columns > 1 && row * shape.stride() < blocks; ++row) {
    const std::uint64_t first = row * shape.stride() * static_cast<std::uint64_t>(shape.block);
    const MeanDensities means = sparsity.means(
        first,
        std::min(call.collective.count,
                 first + std::uint64_t{shape.stride()} * static_cast<std::uint64_t>(shape.block)),
        size());
    of_rank.travels.push_back(means.density);
    of_rank.somewhere.push_back(means.union_density);
    of_any.travels.push_back(means.union_density);
  }
  of_any.somewhere = of_any.travels;
  const double apart =
      std::min(1.0, static_cast<double>(shape.block) / static_cast<double>(call.sparsity.block));
  SlotTraffics of_sent(shape, blocks, d, of_rank, apart), of_told(shape, blocks, u, of_any, apart);
  std::vector<SlotTraffic> up(options().aggregators), down = up;
  for (int slot = 0; slot < shape.slots && shape.columns_in(slot, blocks) > 0; ++slot) {
    const std::size_t aggregator = setup_.owner_of(slot).aggregator - size();
    const SlotTraffic sent = of_sent.of(slot), told = of_told.of(slot);
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
      if (options().in_switch) edges.back().copies = 1;
    }
  return edges;
}

void require(bool right, const std::string& what) {
  if (!right) throw std::invalid_argument(what);
}

}  // namespace

std::unique_ptr<Ends> omnireduce_ends(int ranks, const OmniReduceOptions& options) {
  constexpr int kMostSlots = 1 << 15;  // 15 bits of a packet
  constexpr int kMostColumns = 1024;
  static_assert(std::size_t{kMostColumns} * 4 <= kMostWords);
  require(options.aggregators >= 1, "OmniReduce needs an aggregator");
  require(options.block >= 1, "a block has at least one element");
  require(options.slots >= 1 && options.slots <= kMostSlots,
          "an aggregator has 1 to " + std::to_string(kMostSlots) + " slots");
  require(options.first_slot >= 0 && options.first_slot <= kMostSlots - options.slots,
          "its slots begin at " + std::to_string(options.first_slot) + ", and packets number " +
              std::to_string(kMostSlots) + " of all groups together; use fewer (switch.slots)");
  require(options.columns >= 1 && options.columns <= kMostColumns,
          "a message has 1 to " + std::to_string(kMostColumns) + " blocks");
  require(!options.packets || options.columns == 1,
          "a packet has one block, so its elements are those of a block");
  require(!options.in_switch || (options.packets && options.aggregators == 1),
          "a switch takes packets, and is one");
  require(!options.in_switch || ranks <= kMostSwitchRanks,
          "a switch serves at most " + std::to_string(kMostSwitchRanks) + " ranks");
  return std::make_unique<OmniReduce>(Setup{ranks, options});
}

}  // namespace ghostrank
