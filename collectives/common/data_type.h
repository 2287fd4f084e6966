// Types of the elements that ranks hold, and their sums.
//
// Units: elements; buffers are aligned for the type. Threading: free functions on the caller's
// buffers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ghostrank {

enum class DataType : std::uint8_t { int32, float32, bfloat16, int64, uint8, float16 };
inline constexpr int kDataTypes = 6;
constexpr std::uint32_t bytes_of(DataType type) {
  constexpr std::uint8_t kBytes[kDataTypes] = {4, 4, 2, 8, 1, 2};
  return kBytes[static_cast<int>(type)];
}
std::string_view name_of(DataType type);
constexpr bool is_integer(DataType type) {
  return type == DataType::int32 || type == DataType::int64 || type == DataType::uint8;
}

// into[i] += from[i]. Integers wrap around; bfloat16 and float16 sums are rounded to nearest even.
void add_elements(DataType type, std::byte* into, const std::byte* from, std::uint64_t count);

// bfloat16: the upper half of a float; sums are computed in float and rounded to nearest even.
struct Bf16 {
  std::uint16_t bits;
  static Bf16 from(float f) {
    const auto u = std::bit_cast<std::uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(u >> 16 | 0x40u)};
    return rounded(f);
  }
  // As from(), but a NaN with bits in the lower half may become infinity or -0.
  static Bf16 rounded(float f) {
    const auto u = std::bit_cast<std::uint32_t>(f);
    return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
  }
  float value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// float16: sign, 5 bits of exponent, 10 of fraction; summed like bfloat16.
struct Half {
  std::uint16_t bits;
  static Half from(float f) {
    const auto u = std::bit_cast<std::uint32_t>(f);
    const std::uint32_t sign = (u >> 16) & 0x8000u;
    std::uint32_t x = u & 0x7fffffffu;
    if (x >= 0x47800000u)  // 65,536 and above: infinity or NaN
      x = x > 0x7f800000u ? 0x7e00u : 0x7c00u;
    else if (x < 0x38800000u)  // below 2^-14, subnormal: adding 0.5f rounds to multiples of 2^-24
      x = std::bit_cast<std::uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3f000000u;
    else
      x = (x + 0xc8000fffu + ((x >> 13) & 1u)) >> 13;
    return {static_cast<std::uint16_t>(sign | x)};
  }
  float value() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, x = bits & 0x7fffu;
    if (x >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (x & 0x3ffu) << 13);
    const float f = std::bit_cast<float>(x << 13) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(f));
  }
};

}  // namespace ghostrank
