// 8-bit floating point (Dettmers, 2016): |x| over the largest magnitude becomes the nearest of 128
// fixed levels, which lie densely near zero; the eighth bit is the sign.
//
// Levels: 0, and for z = 0 .. 6 leading zero bits 2^(6-z) values, evenly between 0.1 and 1 (the
// middles of equal parts), times 10^-z. Payload: the largest magnitude, then a byte an element.
// Error of an element: half the widest gap, 0.0071 of the largest magnitude.
#include <algorithm>
#include <array>
#include <cmath>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

using Levels = std::array<float, 128>;

Levels make_levels() {
  Levels levels{};
  std::size_t next = 1;
  for (int zeros = 6; zeros >= 0; --zeros) {
    const int parts = 1 << (6 - zeros);
    for (int i = 0; i < parts; ++i)
      levels[next++] = static_cast<float>((0.1 + 0.9 * (i + 0.5) / parts) * std::pow(10.0, -zeros));
  }
  return levels;
}
const Levels& levels() {
  static const Levels made = make_levels();
  return made;
}

std::uint32_t nearest_level(const Levels& all, float share) {
  const auto above = std::upper_bound(all.begin(), all.end(), share);
  if (above == all.end()) return 127;
  const auto index = static_cast<std::uint32_t>(above - all.begin());
  if (index == 0) return 0;
  return share - all[index - 1] <= all[index] - share ? index - 1 : index;
}

void compress(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  const float largest = largest_magnitude(tensor);
  put_float(payload, 0, largest);
  const Levels& all = levels();
  const bool scales = largest > 0 && std::isfinite(largest);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const std::uint32_t level = scales ? nearest_level(all, std::abs(tensor[i]) / largest) : 0;
    payload[4 + i] = static_cast<std::byte>((tensor[i] < 0 ? 0x80u : 0u) | level);
  }
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  const float largest = get_float(payload, 0);
  const Levels& all = levels();
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto code = std::to_integer<std::uint32_t>(payload[4 + i]);
    const float magnitude = largest * all[code & 0x7fu];
    tensor[i] = (code & 0x80u) != 0 ? -magnitude : magnitude;
  }
}

// Half the widest gap, which is 0.9 / 64, between levels from 0.1 to 1; the top level is as far
// below 1.
double error(std::span<const float> tensor, const CompressionOptions&) {
  return 0.00711 * static_cast<double>(largest_magnitude(tensor));
}

}  // namespace

const Compressor kEightBit{.name = "8bit",
                           .cost = fitted(206),
                           .size = scaled_bytes<1>,
                           .compress = compress,
                           .decompress = decompress,
                           .error = error};

}  // namespace ghostrank
