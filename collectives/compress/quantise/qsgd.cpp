// QSGD (Alistarh et al., 2017): |x| / norm in q levels, rounded up or down at random so that the
// mean is right; norm: the tensor's L2 norm.
//
// Payload: the norm, then a signed level an element: a byte where q < 128, else two. Error of an
// element: one level, norm / q. A norm that is not finite makes every element NaN.
#include <cmath>

#include "collectives/compress/draws.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

std::uint64_t size(std::uint64_t elements, const CompressionOptions& options) {
  return 4 + elements * (options.quantum < 128 ? 1 : 2);
}

float norm_of(std::span<const float> tensor) {
  double sum = 0;
  for (const float x : tensor) sum += static_cast<double>(x) * static_cast<double>(x);
  return static_cast<float>(std::sqrt(sum));
}

template <typename Level>
void put_levels(std::span<const float> tensor, const CompressionOptions& options, float norm,
                std::byte* payload) {
  const auto most = static_cast<float>(options.quantum);
  const float scale = norm > 0 && std::isfinite(norm) ? most / norm : 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float exact = scale > 0 ? std::min(std::abs(tensor[i]) * scale, most) : 0;
    const float down = std::floor(exact);
    const float level = down + (unit_draw(options.seed, i) < exact - down ? 1.0f : 0.0f);
    const auto stored = static_cast<Level>(tensor[i] < 0 ? -level : level);
    std::memcpy(payload + i * sizeof(Level), &stored, sizeof(Level));
  }
}

template <typename Level>
void get_levels(const std::byte* payload, float unit, std::span<float> tensor) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    Level level;
    std::memcpy(&level, payload + i * sizeof(Level), sizeof(Level));
    tensor[i] = unit * static_cast<float>(level);
  }
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const float norm = norm_of(tensor);
  put_float(payload, 0, norm);
  if (options.quantum < 128)
    put_levels<std::int8_t>(tensor, options, norm, payload + 4);
  else
    put_levels<std::int16_t>(tensor, options, norm, payload + 4);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions& options,
                std::span<float> tensor) {
  const float unit = get_float(payload, 0) / static_cast<float>(options.quantum);
  if (options.quantum < 128)
    get_levels<std::int8_t>(payload.data() + 4, unit, tensor);
  else
    get_levels<std::int16_t>(payload.data() + 4, unit, tensor);
}

double error(std::span<const float> tensor, const CompressionOptions& options) {
  return 1.00001 * static_cast<double>(norm_of(tensor)) / options.quantum;
}

}  // namespace

const Compressor kQsgd{.name = "qsgd",
                       .cost = by_passes(3, 4),
                       .size = size,
                       .compress = compress,
                       .decompress = decompress,
                       .error = error};

}  // namespace ghostrank
