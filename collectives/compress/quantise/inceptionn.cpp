// INCEPTIONN (Li et al., 2018), as GRACE sends it: an element's exponent decides how it is sent.
//
//   1 and above              as it is, 32 bits
//   from 2^(mid - 127)       sign and 15 bits of a fraction of 1
//   from 2^(least - 127)     sign and 7 bits of a fraction of 2^(mid - 127)
//   below                    not at all
//
// least = 127 + int(log10(error_bound / 2)), mid = least + ceil((127 - least) / 2), of biased
// exponents. Payload: a class of 2 bits an element (4 a byte), then all 32-bit values, 16-bit ones,
// 8-bit ones. Error of an element: at most the largest of 2^(least - 127), 2^(mid - 134) and 2^-15.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

constexpr int kOne = 127;  // the biased exponent of 1

struct Classes {
  explicit Classes(const CompressionOptions& options)
      : least(kOne + static_cast<int>(std::log10(options.error_bound / 2))),
        mid(least + (kOne - least + 1) / 2) {}
  // 0: left out, 1: a byte, 2: two bytes, 3: as it is.
  unsigned of(float x) const {
    const int exponent = std::bit_cast<std::uint32_t>(x) >> 23 & 0xffu;
    return exponent >= kOne ? 3u : exponent >= mid ? 2u : exponent >= least ? 1u : 0u;
  }
  float byte_scale() const { return std::ldexp(128.0f, kOne - mid); }
  int least, mid;
};

struct Counts {
  std::uint64_t of[4] = {};
};
Counts counted(std::span<const float> tensor, const Classes& classes) {
  Counts counts;
  for (const float x : tensor) ++counts.of[classes.of(x)];
  return counts;
}

std::uint64_t tag_bytes(std::uint64_t elements) { return (elements + 3) / 4; }

std::uint64_t size(std::uint64_t elements, const CompressionOptions&) {
  return tag_bytes(elements) + 4 * elements;
}

std::uint64_t measure(std::span<const float> tensor, const CompressionOptions& options) {
  const Counts n = counted(tensor, Classes(options));
  return tag_bytes(tensor.size()) + 4 * n.of[3] + 2 * n.of[2] + n.of[1];
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const Classes classes(options);
  const Counts n = counted(tensor, classes);
  std::byte* whole = payload + tag_bytes(tensor.size());
  std::byte* half = whole + 4 * n.of[3];
  std::byte* byte = half + 2 * n.of[2];
  std::fill(payload, whole, std::byte{0});
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const unsigned kind = classes.of(tensor[i]);
    payload[i / 4] |= static_cast<std::byte>(kind << 2 * (i % 4));
    const unsigned sign = tensor[i] < 0 ? 1 : 0;
    const float magnitude = std::abs(tensor[i]);
    if (kind == 3) {
      std::memcpy(whole, &tensor[i], 4);
      whole += 4;
    } else if (kind == 2) {
      const auto code =
          static_cast<std::uint16_t>(sign << 15 | static_cast<unsigned>(magnitude * 0x1p15f));
      std::memcpy(half, &code, 2);
      half += 2;
    } else if (kind == 1) {
      *byte++ = static_cast<std::byte>(sign << 7 |
                                       static_cast<unsigned>(magnitude * classes.byte_scale()));
    }
  }
}

void decompress(std::span<const std::byte> payload, const CompressionOptions& options,
                std::span<float> tensor) {
  std::fill(tensor.begin(), tensor.end(), 0.0f);
  const std::uint64_t tags = tag_bytes(tensor.size());
  if (payload.size() < tags) return;
  const Classes classes(options);
  const auto kind_of = [&](std::size_t i) {
    return std::to_integer<unsigned>(payload[i / 4]) >> 2 * (i % 4) & 3u;
  };
  std::uint64_t of[4] = {};
  for (std::size_t i = 0; i < tensor.size(); ++i) ++of[kind_of(i)];
  if (payload.size() < tags + 4 * of[3] + 2 * of[2] + of[1]) return;
  const std::byte* whole = payload.data() + tags;
  const std::byte* half = whole + 4 * of[3];
  const std::byte* byte = half + 2 * of[2];
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const unsigned kind = kind_of(i);
    if (kind == 3) {
      std::memcpy(&tensor[i], whole, 4);
      whole += 4;
    } else if (kind == 2) {
      std::uint16_t code;
      std::memcpy(&code, half, 2);
      half += 2;
      const float magnitude = static_cast<float>(code & 0x7fffu) * 0x1p-15f;
      tensor[i] = (code & 0x8000u) != 0 ? -magnitude : magnitude;
    } else if (kind == 1) {
      const auto code = std::to_integer<unsigned>(*byte++);
      const float magnitude = static_cast<float>(code & 0x7fu) / classes.byte_scale();
      tensor[i] = (code & 0x80u) != 0 ? -magnitude : magnitude;
    }
  }
}

double error(std::span<const float>, const CompressionOptions& options) {
  const Classes classes(options);
  return std::max({std::ldexp(1.0, classes.least - kOne), 0x1p-15,
                   1 / static_cast<double>(classes.byte_scale())});
}

}  // namespace

const Compressor kInceptionn{.name = "inceptionn",
                             .cost = fitted(2927),
                             .size = size,
                             .compress = compress,
                             .decompress = decompress,
                             .error = error,
                             .measure = measure};

}  // namespace ghostrank
