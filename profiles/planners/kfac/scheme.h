// The parts of a job's K-FAC: the variant's row of a table, in which the job may replace each part;
// checked. Threading: pure functions.
#pragma once

#include <vector>

#include "profiles/job/job.h"
#include "profiles/planners/kfac/factors.h"

namespace ghostrank {

enum class FactorReduction : std::uint8_t { none, all_reduce, reduce };

struct KfacScheme {
  FactorReduction reduction = FactorReduction::none;
  bool overlap = false;  // factors in hooks
  FactorFusion fusion = FactorFusion::none;
  InversePlacement placement = InversePlacement::none;
  bool sends_gradients = false;  // else inverses
  bool fuses_g = true;           // in hooks, by the same rule; else each G has a call
};

// Throws Error(usage) for parts that do not go together.
KfacScheme kfac_scheme(const JobSpec& spec);

// By factor, the rank that inverts it, or kEveryRank.
std::vector<int> inverting_ranks(const JobSpec& spec, const KfacScheme& scheme,
                                 const std::vector<Factor>& factors);

}  // namespace ghostrank
