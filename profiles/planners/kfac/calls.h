// Which factors share a call. Threading: pure functions.
#pragma once

#include <vector>

#include "profiles/planners/kfac/compute.h"
#include "profiles/planners/kfac/scheme.h"

namespace ghostrank {

struct FactorCall {
  std::vector<std::size_t> factors;  // in the order of their computation; the call follows the last
  std::uint64_t packed = 0;          // elements
  int root = 0;                      // of a reduce
};

// In the order in which they are made. With hooks, all A's calls come before all G's, and G's walk
// backward. Factors that are reduced to different ranks never share a call.
std::vector<FactorCall> factor_calls(const JobSpec& spec, const KfacScheme& scheme,
                                     const std::vector<Module>& modules,
                                     const std::vector<Factor>& factors,
                                     const std::vector<int>& owners, const KfacCompute& compute);

}  // namespace ghostrank
