// TorchRec's hybrid parallelism for recommendation models as Programs: embedding tables are
// sharded, everything else is data parallel.
//
// clang-format off
//   table-wise   one rank holds a whole table; pooled rows go to the samples' ranks by all-to-all
//   row-wise     every rank holds a share of a table's rows; partial sums are reduce-scattered
//
//   compute | lookup | bottom |       | interaction, top, and back |        | bottom back | update
//   comm             | rows to samples |                           | gradients to rows |
//   grads                                           [ bucket 0 ] ..         [ last ]
//   input   | how many ids, ids of the next batch |
// clang-format on
//
// Samples are spread evenly. Per step, with b samples per rank, n ranks and width D: every rank
// sends to each rank the ids of that rank's tables (b x lookups int64, and b counts per table). For
// each table-wise table its rank sends b D values to every rank and receives as many gradients. For
// each row-wise table n b D values go into a reduce-scatter, and the gradients come back by
// all-gather. Rows and their gradients have the parameters' type. Ids fall evenly, as whole ids, on
// the shares of a row-wise table. As in TorchRec's pipeline, a step fetches the ids of the next
// one. DDP's buckets reduce the dense gradients.
//
// Lookups and updates of rows take memory time: both read fp32 rows, and the update also writes
// them. Derived from TorchRec's own description, not traced. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"

namespace ghostrank {

inline constexpr int kRowWise = -1;  // instead of a rank: the table is row-wise

// The rank of every table, or kRowWise for tables of more than parallel.row_wise_above rows.
// Greedy: tables with more lookups first, each to the rank with the fewest so far, the first of
// equals; with parallel.random_tables to a rank drawn by `seed`.
std::vector<int> place_tables(const Recommendation& model, int ranks, const ParallelPlan& parallel,
                              std::uint64_t seed);

// Bytes of a table's row and its optimizer's state.
std::uint64_t row_bytes(const Recommendation& model);

Workload plan_torchrec(const JobSpec& spec);

}  // namespace ghostrank
