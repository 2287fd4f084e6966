// The rows of the library "generic": the textbook algorithms, with their closed-form costs. Costs
// are written from the textbooks' formulas, not from the schedules; the tests hold the two against
// each other.
//
// In the formulas for people n is the number of ranks, S the bytes of `count` elements, m the
// largest power of two in n, x = n - m.
#include <array>
#include <bit>

#include "collectives/generic.h"
#include "collectives/libraries.h"

namespace ghostrank {
namespace {

template <const Form& kForm>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  return std::make_unique<Textbook>(kForm, c, comm);
}

std::uint64_t ranks(const Collective& c) { return static_cast<std::uint64_t>(c.size); }
std::uint64_t bytes(const Collective& c) { return c.count * c.element_bytes; }
int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

Cost ring_all_reduce(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * (n - 1) * n};
}

// Ring reduce-scatter, ring all-gather and pairwise all-to-all: n-1 rounds of one block each.
Cost all_blocks_but_own(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {c.size - 1, n * (n - 1) * bytes(c), n * (n - 1)};
}

Cost binomial_tree(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {ceil_log2(c.size), (n - 1) * bytes(c), n - 1};
}

Cost recursive_doubling(const Collective& c) {
  const std::uint64_t n = ranks(c), m = std::bit_floor(n), extra = n - m;
  const int levels = static_cast<int>(std::bit_width(m)) - 1;
  const std::uint64_t messages = m * static_cast<std::uint64_t>(levels) + 2 * extra;
  return {levels + (extra > 0 ? 2 : 0), messages * bytes(c), messages};
}

Cost one_message(const Collective& c) {
  if (c.size < 2) return {};
  return {1, bytes(c), 1};
}

Cost dissemination(const Collective& c) {
  const int levels = ceil_log2(c.size);
  return {levels, 0, ranks(c) * static_cast<std::uint64_t>(levels)};
}

constexpr std::array kRows{
    Algorithm{"generic", Func::all_reduce, "ring", "2(n-1)", "2(n-1) S", make<kRingAllReduce>,
              ring_all_reduce},
    Algorithm{"generic", Func::all_reduce, "recursive_doubling", "log2 m (+2 if x>0)",
              "(m log2 m + 2x) S", make<kRecursiveDoublingAllReduce>, recursive_doubling},
    Algorithm{"generic", Func::reduce_scatter, "ring", "n-1", "n(n-1) S", make<kRingReduceScatter>,
              all_blocks_but_own},
    Algorithm{"generic", Func::all_gather, "ring", "n-1", "n(n-1) S", make<kRingAllGather>,
              all_blocks_but_own},
    Algorithm{"generic", Func::broadcast, "binomial", "ceil(log2 n)", "(n-1) S",
              make<kBinomialBroadcast>, binomial_tree},
    Algorithm{"generic", Func::reduce, "binomial", "ceil(log2 n)", "(n-1) S", make<kBinomialReduce>,
              binomial_tree},
    Algorithm{"generic", Func::all_to_all, "pairwise", "n-1", "n(n-1) S", make<kPairwiseAllToAll>,
              all_blocks_but_own},
    Algorithm{"generic", Func::send_recv, "direct", "1", "S", make<kSendRecv>, one_message},
    Algorithm{"generic", Func::barrier, "dissemination", "ceil(log2 n)", "0",
              make<kDisseminationBarrier>, dissemination},
};

}  // namespace

std::span<const Algorithm> generic_rows() { return kRows; }

}  // namespace ghostrank
