// TorchRec's hybrid parallelism for recommendation models as Programs: tables of embeddings are
// sharded, everything else is data parallel.
//
//   table-wise   a whole table is on one rank: pooled rows go to the samples' ranks by all-to-all
//   row-wise     every rank has a share of a table's rows: partial sums are reduced and scattered
//
//   compute | lookup | bottom |       | interaction, top, and back |        | bottom back | update
//   | comm             | rows to samples |                           | gradients to rows | grads [
//   bucket 0 ] ..                  [ last ] input   | how many ids, ids of the next batch |
//
// Samples are spread evenly. Per step, b samples a rank, n ranks, width D: ids of a rank's tables
// come from everybody (b x lookups int64, and as many counts as it has tables); of the table-wise
// tables rank i sends b D values per table to every rank, and gets as many gradients; of the
// row-wise ones n b D values per table go into a reduce-scatter and the gradients come back by
// all-gather. Rows and their gradients have the type of the products. Ids fall evenly on the shares
// of a row-wise table, by whole ids. As TorchRec's pipeline does it, a step fetches the ids of the
// next one. Dense gradients are reduced in DDP's buckets.
//
// Looking up and updating rows takes memory time: each is read in fp32, and for the update also
// written. Derived from how TorchRec describes itself, not traced. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"

namespace ghostrank {

inline constexpr int kRowWise = -1;  // in place of a table's rank

// The rank of every table. Greedy: tables with more lookups first, each to the rank with the fewest
// so far; of equals the first.
std::vector<int> place_tables(const Recommendation& model, int ranks, const ParallelPlan& parallel,
                              std::uint64_t seed);

Workload plan_torchrec(const JobSpec& spec);

}  // namespace ghostrank
