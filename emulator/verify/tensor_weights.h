// The weights of a tensor that a scheme's helpers step (Ends::steps_weights()), as every rank
// should receive them.
//
// A call that steps the tensor ends only after all ranks have begun it, and the calls of one tensor
// follow each other. So the first rank that compares its result takes the step, and the others find
// it taken. Threading: one owner.
#pragma once

#include <cstdint>
#include <optional>

#include "collectives/check/nesterov_reference.h"

namespace ghostrank {

struct TensorWeights {
  NesterovReference reference;
  std::optional<std::uint64_t> stepped;  // salt of the call that took the last step
};

}  // namespace ghostrank
