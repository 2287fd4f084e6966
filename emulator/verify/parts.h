// Exchanges by all-to-all (PayloadExchange::all_to_all), in verify mode. The tensor is cut into a
// part for every rank, padded with zeros.
//
//   all_to_all   a rank gives every other the payload of the other's part, and adds up what it gets
//   all_gather   it compresses its sum again and gives that to all
//
// Cost: each rank compresses the tensors of all ranks, as in verify/compressed.h. Threading: free
// functions on the caller's buffers.
#pragma once

#include <cstddef>

#include "emulator/verify/verify.h"

namespace ghostrank {

// As the functions in verify/compressed.h.
void fill_parts_input(const RankCall& call, std::byte* input);
void fill_parts(const RankCall& call, std::byte* work);
void finish_parts(const RankCall& call, const std::byte* work);
Checked check_parts(const RankCall& call, const std::byte* work);

}  // namespace ghostrank
