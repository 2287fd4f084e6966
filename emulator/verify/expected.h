// Calls that end with something else than a sum, in verify mode: ranks contribute the same data as
// to a sum, and each element is compared, bit by bit, with the result of the scheme's reference
// (collectives/agent.h).
//
// Units: elements. Threading: a call's TensorResult has one owner.
#pragma once

#include <cstddef>

#include "emulator/verify/verify.h"

namespace ghostrank {

// As check_work(); `call` must have an expected result.
Checked check_expected(const RankCall& call, Range range, const std::byte* work);

}  // namespace ghostrank
