// Calls that exchange compressed gradients, in verify mode: every rank starts from its tensor's
// payload, gathered payloads are compared byte by byte, sums of payloads within their type's
// rounding, and what is decompressed from them with the sum of all ranks' tensors, within the error
// that the method states.
//
// Cost: a rank compresses the tensors of all. Threading: free functions on the caller's buffers.
#pragma once

#include <cstddef>

#include "emulator/verify/verify.h"

namespace ghostrank {

// The whole work buffer; of a call with a method.
void fill_compressed(const RankCall& call, std::byte* work);
// Elements of payloads and of the decompressed sum.
Checked check_compressed(const RankCall& call, const std::byte* work);

}  // namespace ghostrank
