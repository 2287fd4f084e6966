// What the plan of a job is, besides its programs. Threading: pure functions.
#pragma once

#include <optional>

#include "profiles/job.h"
#include "profiles/pipeline.h"

namespace ghostrank {

// Of a job that has stages. Throws Error(usage) when the plan does not fit.
std::optional<Pipeline> pipeline_of(const JobSpec& spec);

}  // namespace ghostrank
