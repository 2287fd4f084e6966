// See openmpi/costs.h.
#include "collectives/openmpi/costs.h"

#include <algorithm>
#include <bit>

#include "collectives/common/powers.h"

namespace ghostrank::openmpi_costs {
namespace {

Cost all_blocks(const Collective& c, int steps, std::uint64_t messages) {
  return {steps, ranks(c) * (ranks(c) - 1) * bytes(c), messages};
}

// Every rank receives all blocks but its own.
Cost gathered(const Collective& c, int steps, std::uint64_t messages) {
  return {steps, (ranks(c) - 1) * all_counts(c) * c.element_bytes, messages};
}

}  // namespace

std::uint64_t survivors(const Collective& c) { return std::bit_floor(ranks(c)); }

Cost ring_all_reduce(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * (n - 1) * n};
}

Cost doubling_all_reduce(const Collective& c) {
  const int levels = floor_log2(c.size);
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  const std::uint64_t messages = m * levels + 2 * extra;
  return {levels + (extra > 0 ? 2 : 0), messages * bytes(c), messages};
}

Cost linear_all_reduce(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), 2 * (n - 1) * bytes(c), 2 * (n - 1)};
}

Cost rabenseifner(const Collective& c) {
  const int levels = floor_log2(c.size);
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  const std::uint64_t upper_half = (c.count - c.count / 2) * c.element_bytes;
  return {2 * levels + (extra > 0 ? 3 : 0),
          2 * (m - 1) * bytes(c) + extra * (2 * bytes(c) + upper_half), 2 * m * levels + 4 * extra};
}

Cost one_block_a_step(const Collective& c) {
  return all_blocks(c, c.size - 1, ranks(c) * (ranks(c) - 1));
}

Cost log_steps(const Collective& c) {
  const int steps = ceil_log2(c.size);
  return all_blocks(c, steps, ranks(c) * steps);
}

Cost neighbor_exchange(const Collective& c) {
  return all_blocks(c, c.size / 2, ranks(c) * (ranks(c) / 2));
}

Cost halving(const Collective& c) {
  const int levels = floor_log2(c.size);
  const std::uint64_t m = survivors(c), extra = ranks(c) - m;
  return {levels + (extra > 0 ? 2 : 0), (ranks(c) * (ranks(c) - 1) + extra) * bytes(c),
          m * levels + 2 * extra};
}

Cost bruck_all_to_all(const Collective& c) {
  Cost cost = log_steps(c);
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(c.size); ++i) bits += std::popcount(i);
  cost.bytes = ranks(c) * bits * bytes(c);
  return cost;
}

Cost one_by_one(const Collective& c) {
  return {c.size - 1, (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

Cost gathered_one_a_step(const Collective& c) {
  return gathered(c, c.size - 1, ranks(c) * (ranks(c) - 1));
}

Cost gathered_log_steps(const Collective& c) {
  const int steps = ceil_log2(c.size);
  return gathered(c, steps, ranks(c) * steps);
}

Cost gathered_by_neighbors(const Collective& c) {
  return gathered(c, c.size / 2, ranks(c) * (ranks(c) / 2));
}

// Only the gather-v; Open MPI sends no message for an empty block.
Cost gather_v(const Collective& c) {
  const std::uint64_t full = ranks(c) - std::count(c.counts->begin(), c.counts->end(), 0U);
  const std::uint64_t messages = full - (c.counts->front() > 0 ? 1 : 0);
  return {static_cast<int>(messages), (all_counts(c) - c.counts->front()) * c.element_bytes,
          messages};
}

Cost exchanged(const Collective& c) {
  std::uint64_t elements = all_counts(c);
  for (std::uint64_t r = 0; r < ranks(c); ++r) elements -= (*c.counts)[r * ranks(c) + r];
  return {c.size - 1, elements * c.element_bytes, ranks(c) * (ranks(c) - 1)};
}

// All ranks send to rank 0 first, so the first message for the last rank comes in step n-1.
Cost exchanged_by_rank(const Collective& c) {
  Cost cost = exchanged(c);
  cost.steps = c.size < 2 ? 0 : 2 * c.size - 3;
  return cost;
}

Cost linear_barrier(const Collective& c) { return {2 * (c.size - 1), 0, 2 * (ranks(c) - 1)}; }

Cost doubling_barrier(const Collective& c) {
  Cost cost = doubling_all_reduce(c);
  cost.bytes = 0;
  return cost;
}

Cost dissemination_barrier(const Collective& c) {
  const int steps = ceil_log2(c.size);
  return {steps, 0, ranks(c) * steps};
}

Cost tree_barrier(const Collective& c) { return {2 * ceil_log2(c.size), 0, 2 * (ranks(c) - 1)}; }

Cost signalled_gather(const Collective& c) {
  return {3 * (c.size - 1), (ranks(c) - 1) * bytes(c), 3 * (ranks(c) - 1)};
}

Cost binomial_blocks(const Collective& c) {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(c.size); ++i) bits += std::popcount(i);
  return {ceil_log2(c.size), bits * bytes(c), ranks(c) - 1};
}

Cost one_message(const Collective& c) { return c.size < 2 ? Cost{} : Cost{1, bytes(c), 1}; }

}  // namespace ghostrank::openmpi_costs
