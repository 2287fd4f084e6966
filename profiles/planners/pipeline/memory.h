// What a pipeline stage keeps of forward passes at its fullest moment. Threading: pure functions.
#pragma once

#include <span>

#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

// `kept`: bytes by chunk, from a micro-batch's forward to the end of its backward; `passing`: more
// bytes by chunk while a pass of the chunk runs. The slots of a few rounds suffice: further rounds
// repeat them.
double most_kept(const Pipeline& pipeline, int stage, std::span<const double> kept,
                 std::span<const double> passing);

}  // namespace ghostrank
