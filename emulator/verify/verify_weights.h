// Calls that end with weights in place of a sum, in verify mode: ranks contribute what they
// contribute to a sum, and each element is compared with the reference's weight, bit by bit.
//
// Units: elements. Threading: a call's TensorWeights have one owner.
#pragma once

#include <cstddef>

#include "emulator/verify/verify.h"

namespace ghostrank {

// As check_work(); `call` must have weights.
Checked check_weights(const RankCall& call, Range range, const std::byte* work);

}  // namespace ghostrank
