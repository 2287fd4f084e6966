// Natural compression (Horvath et al., 2019): every element becomes a power of two, the next larger
// one with probability mantissa / 2^23, so that the mean is right.
//
// Payload: a byte an element: the sign, and the exponent less 18 in 7 bits, clipped to 2^-109 (sent
// as zero) and 2^18. Error of an element: at most its magnitude.
#include <algorithm>
#include <bit>
#include <cmath>

#include "collectives/compress/draws.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kLeast = 18, kMost = 145;  // biased exponents

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(tensor[i]);
    const float fraction = static_cast<float>(bits & 0x7fffffu) * 0x1p-23f;
    const std::uint32_t up = unit_draw(options.seed, i) < fraction ? 1 : 0;
    const std::uint32_t exponent = std::clamp(((bits >> 23) & 0xffu) + up, kLeast, kMost);
    payload[i] = static_cast<std::byte>((bits >> 31) << 7 | (exponent - kLeast));
  }
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto code = std::to_integer<std::uint32_t>(payload[i]);
    const std::uint32_t bits = (code & 0x80u) << 24 | ((code & 0x7fu) + kLeast) << 23;
    tensor[i] = (code & 0x7fu) == 0 ? 0.0f : std::bit_cast<float>(bits);
  }
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  return static_cast<double>(largest_magnitude(tensor));
}

}  // namespace

const Compressor kNatural{.name = "natural",
                          .cost = fitted(196),
                          .size = scaled_bytes<0>,
                          .compress = compress,
                          .decompress = decompress,
                          .error = error};

}  // namespace ghostrank
