// The streams that move background, and the roles of the ranks that have them.
//
// Errors: Error(usage). Threading: pure functions.
#pragma once

#include <vector>

#include "profiles/job/job.h"
#include "profiles/planners/background/pairs.h"
#include "profiles/planners/background/steps.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Refuses a rate so low that a step's bytes of a rank take longer than a day.
void check_rate(const Background& background, double bytes);

// Gives every rank a role with its part of the services. Ranks of a role with the same parts keep a
// common role; servers of storage nodes with the same parts share one.
void add_to_roles(const JobSpec& spec, Workload& workload, const std::vector<Service>& services,
                  const std::vector<StepVariant>& variants);

}  // namespace ghostrank
