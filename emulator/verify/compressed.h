// Calls that exchange compressed gradients, in verify mode (all-to-alls: verify/parts.h). Every
// rank starts from its tensor's payload. Gathered payloads are compared byte by byte; sums of
// payloads within the rounding of their type; and the tensor decompressed from them with the sum of
// all ranks' tensors, within the error that the method states.
//
// Cost: each rank compresses the tensors of all ranks. Threading: free functions on the caller's
// buffers.
#pragma once

#include <cstddef>

#include "emulator/verify/verify.h"

namespace ghostrank {

// Fills the input, where the call has one: that of an all-to-all.
void fill_compressed_input(const RankCall& call, std::byte* input);
// Fills the whole work buffer; `call` must have a method.
void fill_compressed(const RankCall& call, std::byte* work);
// With GradientStates: gives the caller's state what the rank received. Call it once, after the
// check.
void finish_compressed(const RankCall& call, const std::byte* work);
// Checks the elements of the payloads and of the decompressed sum.
Checked check_compressed(const RankCall& call, const std::byte* work);

}  // namespace ghostrank
