// The rows of the library "generic": the textbook algorithms and their closed-form costs. The costs
// are written from the textbooks' formulas, not from the schedules; the tests compare the two. Rows
// of `two_level` have none, because a Cost knows no nodes.
//
// In the printed formulas, n is the number of ranks, S the bytes of `count` elements, m the
// largest power of two <= n, x = n - m, b(n) the set bits in 0 .. n-1, L the ranks of a node, N the
// number of nodes, T the bytes of all `counts`, and `own` those of T that no message carries.
#include <algorithm>
#include <array>
#include <bit>

#include "collectives/common/powers.h"
#include "collectives/cost_terms.h"
#include "collectives/generic/generic.h"
#include "collectives/libraries.h"

namespace ghostrank {
namespace {

template <const Form& kForm>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  return std::make_unique<Textbook>(kForm, c, comm);
}

Cost ring_all_reduce(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * (n - 1) * n};
}

// Ring reduce-scatter, ring all-gather and pairwise all-to-all: n-1 rounds of one block each.
Cost all_blocks_but_own(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {c.size - 1, n * (n - 1) * bytes(c), n * (n - 1)};
}

// Every rank receives all blocks but its own.
Cost gathered_blocks(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {c.size - 1, (n - 1) * all_counts(c) * c.element_bytes, n * (n - 1)};
}

Cost bruck_all_gather_v(const Collective& c) {
  const int levels = ceil_log2(c.size);
  return {levels, gathered_blocks(c).bytes, ranks(c) * levels};
}

// All counts but the diagonal.
Cost exchanged_blocks(const Collective& c) {
  std::uint64_t elements = all_counts(c);
  for (std::size_t r = 0; r < ranks(c); ++r) elements -= (*c.counts)[r * (ranks(c) + 1)];
  return {c.size - 1, elements * c.element_bytes, ranks(c) * (ranks(c) - 1)};
}

Cost binomial_tree(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {ceil_log2(c.size), (n - 1) * bytes(c), n - 1};
}

// Survivors exchange in each of `rounds` rounds; folded positions send before and receive after.
Cost exchanges(const Collective& c, int rounds, std::uint64_t bytes_sent) {
  const std::uint64_t n = ranks(c), m = std::bit_floor(n), extra = n - m;
  return {rounds + (extra > 0 ? 2 : 0), bytes_sent, m * rounds + 2 * extra};
}

Cost recursive_doubling(const Collective& c) {
  Cost cost = exchanges(c, floor_log2(c.size), 0);
  cost.bytes = cost.messages * bytes(c);
  return cost;
}

Cost rabenseifner(const Collective& c) {
  return exchanges(c, 2 * floor_log2(c.size), 2 * (ranks(c) - 1) * bytes(c));
}

Cost recursive_halving(const Collective& c) {
  const std::uint64_t n = ranks(c), extra = n - std::bit_floor(n);
  return exchanges(c, floor_log2(c.size), (n * (n - 1) + extra) * bytes(c));
}

Cost doubling_all_gather(const Collective& c) {
  return exchanges(c, floor_log2(c.size), ranks(c) * (ranks(c) - 1) * bytes(c));
}

// Steps from the send of the root of an in-order tree with n positions until the last leaf has
// received. The left subtree is full; the right one is an in-order tree again.
int in_order_down(int n) {
  const int height = floor_log2(n);
  if (height == 0) return 0;
  const int left = 2 * height - 1, rest = n - (1 << height);
  return rest == 0 ? left : std::max(left, 2 + in_order_down(rest));
}

// Every position waits for its left child, then for its right child, whose subtree is not larger.
Cost double_tree(const Collective& c) {
  const int height = floor_log2(c.size);
  if (height == 0) return {};
  const int up = 2 * height - (c.size == 1 << height ? 1 : 0);
  const std::uint64_t trees = c.count > 1 ? 2 : 1, others = ranks(c) - 1;
  return {up + in_order_down(c.size), 2 * others * bytes(c), 2 * trees * others};
}

// Trees over all ranks but the root; the root is one step away from the tops of both.
Cost double_tree_broadcast(const Collective& c) {
  if (c.size == 1) return {};
  const std::uint64_t trees = c.count > 1 ? 2 : 1, others = ranks(c) - 1;
  return {1 + in_order_down(c.size - 1), others * bytes(c), trees * others};
}

Cost double_tree_reduce(const Collective& c) {
  Cost cost = double_tree_broadcast(c);
  if (c.size < 3) return cost;
  const int others = c.size - 1, height = floor_log2(others);
  cost.steps = 1 + 2 * height - (others == 1 << height ? 1 : 0);
  return cost;
}

Cost bruck_all_gather(const Collective& c) {
  const int levels = ceil_log2(c.size);
  return {levels, ranks(c) * (ranks(c) - 1) * bytes(c), ranks(c) * levels};
}

std::uint64_t bits_set_below(int n) {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(n); ++i) bits += std::popcount(i);
  return bits;
}

Cost bruck_all_to_all(const Collective& c) {
  const int levels = ceil_log2(c.size);
  return {levels, ranks(c) * bits_set_below(c.size) * bytes(c), ranks(c) * levels};
}

// n-1 messages, one after the other at the root or along a chain.
Cost one_by_one(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {c.size - 1, (n - 1) * bytes(c), n - 1};
}

Cost binomial_blocks(const Collective& c) {
  return {ceil_log2(c.size), bits_set_below(c.size) * bytes(c), ranks(c) - 1};
}

Cost one_message(const Collective& c) {
  if (c.size < 2) return {};
  return {1, bytes(c), 1};
}

Cost dissemination(const Collective& c) {
  const int levels = ceil_log2(c.size);
  return {levels, 0, ranks(c) * levels};
}

const std::array kRows{
    Algorithm{"generic", Func::all_reduce, "ring", "2(n-1)", "2(n-1) S", make<kRingAllReduce>,
              ring_all_reduce},
    Algorithm{"generic", Func::all_reduce, "recursive_doubling", "log2 m (+2 if x>0)",
              "(m log2 m + 2x) S", make<kRecursiveDoublingAllReduce>, recursive_doubling},
    Algorithm{"generic", Func::all_reduce, "rabenseifner", "2 log2 m (+2 if x>0)", "2(n-1) S",
              make<kRabenseifnerAllReduce>, rabenseifner},
    Algorithm{"generic", Func::all_reduce, "two_level", "2(L-1) + 2(N-1)", "2(n-1) S",
              make<kTwoLevelAllReduce>},
    Algorithm{"generic", Func::all_reduce, "double_tree", "about 4 log2 n", "2(n-1) S",
              make_double_tree, double_tree},
    Algorithm{"generic", Func::reduce_scatter, "ring", "n-1", "n(n-1) S", make<kRingReduceScatter>,
              all_blocks_but_own},
    Algorithm{"generic", Func::reduce_scatter, "recursive_halving", "log2 m (+2 if x>0)",
              "(n(n-1) + x) S", make<kRecursiveHalvingReduceScatter>, recursive_halving},
    Algorithm{"generic", Func::reduce_scatter, "two_level", "(L-1) + (N-1)", "n(n-1) S",
              make<kTwoLevelReduceScatter>},
    Algorithm{"generic", Func::all_gather, "ring", "n-1", "n(n-1) S", make<kRingAllGather>,
              all_blocks_but_own},
    Algorithm{"generic", Func::all_gather, "recursive_doubling", "log2 m (+2 if x>0)", "n(n-1) S",
              make<kRecursiveDoublingAllGather>, doubling_all_gather},
    Algorithm{"generic", Func::all_gather, "bruck", "ceil(log2 n)", "n(n-1) S",
              make<kBruckAllGather>, bruck_all_gather},
    Algorithm{"generic", Func::all_gather, "two_level", "(L-1) + (N-1)", "n(n-1) S",
              make<kTwoLevelAllGather>},
    Algorithm{"generic", Func::broadcast, "binomial", "ceil(log2 n)", "(n-1) S",
              make<kBinomialBroadcast>, binomial_tree},
    Algorithm{"generic", Func::broadcast, "chain", "n-1", "(n-1) S", make<kChainBroadcast>,
              one_by_one},
    Algorithm{"generic", Func::broadcast, "linear", "n-1", "(n-1) S", make<kLinearBroadcast>,
              one_by_one},
    Algorithm{"generic", Func::broadcast, "double_tree", "about 2 log2 n", "(n-1) S",
              make_double_tree, double_tree_broadcast},
    Algorithm{"generic", Func::broadcast, "two_level", "ceil(log2 L) + ceil(log2 N)", "(n-1) S",
              make<kTwoLevelBroadcast>},
    Algorithm{"generic", Func::reduce, "binomial", "ceil(log2 n)", "(n-1) S", make<kBinomialReduce>,
              binomial_tree},
    Algorithm{"generic", Func::reduce, "chain", "n-1", "(n-1) S", make<kChainReduce>, one_by_one},
    Algorithm{"generic", Func::reduce, "double_tree", "about 2 log2 n", "(n-1) S", make_double_tree,
              double_tree_reduce},
    Algorithm{"generic", Func::reduce, "two_level", "ceil(log2 L) + ceil(log2 N)", "(n-1) S",
              make<kTwoLevelReduce>},
    Algorithm{"generic", Func::all_to_all, "pairwise", "n-1", "n(n-1) S", make<kPairwiseAllToAll>,
              all_blocks_but_own},
    Algorithm{"generic", Func::all_to_all, "linear", "n-1", "n(n-1) S", make<kLinearAllToAll>,
              all_blocks_but_own},
    Algorithm{"generic", Func::all_to_all, "bruck", "ceil(log2 n)", "n b(n) S",
              make<kBruckAllToAll>, bruck_all_to_all},
    Algorithm{"generic", Func::send_recv, "direct", "1", "S", make<kSendRecv>, one_message},
    Algorithm{"generic", Func::barrier, "dissemination", "ceil(log2 n)", "0",
              make<kDisseminationBarrier>, dissemination},
    Algorithm{"generic", Func::gather, "binomial", "ceil(log2 n)", "b(n) S", make<kBinomialGather>,
              binomial_blocks},
    Algorithm{"generic", Func::gather, "linear", "n-1", "(n-1) S", make<kLinearGather>, one_by_one},
    Algorithm{"generic", Func::scatter, "binomial", "ceil(log2 n)", "b(n) S",
              make<kBinomialScatter>, binomial_blocks},
    Algorithm{"generic", Func::scatter, "linear", "n-1", "(n-1) S", make<kLinearScatter>,
              one_by_one},
    Algorithm{"generic", Func::all_gather_v, "ring", "n-1", "(n-1) T", make<kRingAllGatherV>,
              gathered_blocks},
    Algorithm{"generic", Func::all_gather_v, "bruck", "ceil(log2 n)", "(n-1) T",
              make<kBruckAllGather>, bruck_all_gather_v},
    Algorithm{"generic", Func::all_gather_v, "linear", "n-1", "(n-1) T", make<kLinearAllGatherV>,
              gathered_blocks},
    Algorithm{"generic", Func::all_to_all_v, "pairwise", "n-1", "T - own", make<kPairwiseAllToAllV>,
              exchanged_blocks},
    Algorithm{"generic", Func::all_to_all_v, "linear", "n-1", "T - own", make<kLinearAllToAll>,
              exchanged_blocks},
};

}  // namespace

std::span<const Algorithm> generic_rows() { return kRows; }

}  // namespace ghostrank
