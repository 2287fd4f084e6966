// Calls that end with something else than a sum, in verify mode: ranks contribute what they
// contribute to a sum, and each element is compared with what the scheme's reference says, bit by
// bit.
//
// Units: elements. Threading: a call's TensorResult has one owner.
#pragma once

#include <cstddef>

#include "emulator/verify/verify.h"

namespace ghostrank {

// As check_work(); `call` must have an expected result.
Checked check_expected(const RankCall& call, Range range, const std::byte* work);

}  // namespace ghostrank
