// The costs of the algorithms of the library "openmpi-4.1", from closed formulas, and the numbers
// in these formulas: n ranks, S bytes of `count` elements, the largest power of two <= n
// (survivors).
//
// Threading: pure functions.
#pragma once

#include <cstdint>

#include "collectives/cost_terms.h"
#include "collectives/generic/trees.h"
#include "collectives/schedule.h"

namespace ghostrank::openmpi_costs {

std::uint64_t survivors(const Collective& c);

Cost ring_all_reduce(const Collective& c);
Cost doubling_all_reduce(const Collective& c);
Cost linear_all_reduce(const Collective& c);
Cost rabenseifner(const Collective& c);
Cost one_block_a_step(const Collective& c);
Cost log_steps(const Collective& c);
Cost neighbor_exchange(const Collective& c);
Cost halving(const Collective& c);
Cost bruck_all_to_all(const Collective& c);
Cost one_by_one(const Collective& c);
Cost gathered_one_a_step(const Collective& c);
Cost gathered_log_steps(const Collective& c);
Cost gathered_by_neighbors(const Collective& c);
Cost gather_v(const Collective& c);
Cost exchanged(const Collective& c);
Cost exchanged_by_rank(const Collective& c);
Cost linear_barrier(const Collective& c);
Cost doubling_barrier(const Collective& c);
Cost dissemination_barrier(const Collective& c);
Cost tree_barrier(const Collective& c);
Cost signalled_gather(const Collective& c);
Cost binomial_blocks(const Collective& c);
Cost one_message(const Collective& c);
Cost binary_reduce(const Collective& c);
Cost binomial_reduce(const Collective& c);
Cost in_order_reduce(const Collective& c);
Cost rabenseifner_reduce(const Collective& c);
Cost butterfly(const Collective& c);
Cost split_binary(const Collective& c);
Cost scatter_all_gather(const Collective& c);
Cost scatter_ring(const Collective& c);

template <TreeChild kChild>
Cost tree(const Collective& c) {
  return {tree_steps(kChild, c.size), (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

}  // namespace ghostrank::openmpi_costs
