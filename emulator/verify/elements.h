// Elements as ranks hold them in verify mode: writes values as elements and compares elements with
// values. Sums are in collectives/common/data_type.h; integers wrap around there, so negative
// partial sums do not harm the sum of all ranks.
//
// Units: elements; buffers are aligned for the type. Threading: free functions on the caller's
// buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/common/data_type.h"
#include "emulator/verify/values.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Writes values as elements: `values` one by one, or `value` everywhere.
void put_values(DataType type, std::byte* to, const Value* values, std::uint64_t count);
void put_value(DataType type, std::byte* to, Value value, std::uint64_t count);

// Elements as doubles; int64 beyond 2^53 is rounded.
std::vector<double> as_numbers(DataType type, const std::byte* elements, std::uint64_t count);

// The number of elements that differ in their bytes.
std::uint64_t count_different(DataType type, const std::byte* elements, const std::byte* others,
                              std::uint64_t count);

// The number of elements that differ from their value.
std::uint64_t count_unequal(DataType type, const std::byte* elements, const Value* values,
                            std::uint64_t count);

}  // namespace ghostrank
