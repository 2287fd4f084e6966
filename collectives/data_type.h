// Types of the elements that ranks hold, and sums of them.
//
// Units: elements; buffers are aligned for the type. Threading: free functions on the caller's
// buffers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ghostrank {

enum class DataType : std::uint8_t { int32, float32, bfloat16, int64, uint8 };
inline constexpr int kDataTypes = 5;
std::uint32_t bytes_of(DataType type);
std::string_view name_of(DataType type);

// into[i] += from[i]. Whole numbers wrap around, bfloat16 is rounded to nearest even.
void add_elements(DataType type, std::byte* into, const std::byte* from, std::uint64_t count);

// bfloat16: the upper half of a float; sums are formed in float and rounded to nearest even.
struct Bf16 {
  std::uint16_t bits;
  static Bf16 from(float f) {
    auto u = std::bit_cast<std::uint32_t>(f);
    u += 0x7fffu + ((u >> 16) & 1u);
    return {static_cast<std::uint16_t>(u >> 16)};
  }
  float value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace ghostrank
