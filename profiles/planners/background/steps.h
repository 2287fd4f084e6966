// Which background travels in which step: `every` and `over` of each.
//
// Errors: Error(usage). Threading: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct StepVariant {
  std::size_t base = 0;                  // program of the plan without background
  std::vector<std::optional<int>> part;  // by background: which of its `over` parts; empty: none
  auto operator<=>(const StepVariant&) const = default;
};

// The distinct programs of a job with background; the one most frequent in the steady state is
// last. Writes the order of the workload's iterations, which follows the plan's own if it has one.
std::vector<StepVariant> order_variants(const JobSpec& spec, Workload& workload);

}  // namespace ghostrank
