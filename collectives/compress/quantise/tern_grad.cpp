// TernGrad (Wen et al., 2017): elements are clipped at 2.5 standard deviations; then each is sent
// as -1, 0 or 1 times s, the largest clipped magnitude: its sign with probability |x| / s, so that
// the mean is right (of what was clipped).
//
// Payload: s, then a byte an element. Error of an element: at most s, or what clipping took off.
#include <cmath>

#include "collectives/compress/draws.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

constexpr double kClip = 2.5;

// The magnitude at which elements are clipped; the largest one where nothing is clipped: in a
// tensor of one magnitude, whose deviation is 0 but for rounding, or that is not finite.
float clip_of(std::span<const float> tensor) {
  double sum = 0, squares = 0;
  for (const float x : tensor) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const auto n = static_cast<double>(tensor.size());
  const double variance = squares / n - sum / n * sum / n;
  const auto clip = static_cast<float>(kClip * std::sqrt(variance));  // NaN below 0
  const float largest = largest_magnitude(tensor);
  return clip > 1e-3f * largest ? clip : largest;
}

float scale_of(std::span<const float> tensor) {
  return std::min(largest_magnitude(tensor), clip_of(tensor));
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const float scale = scale_of(tensor);
  put_float(payload, 0, scale);
  const float share = scale > 0 && std::isfinite(scale) ? 1 / scale : 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    // A magnitude of s or more is certain: no draw reaches 1.
    const bool sent = unit_draw(options.seed, i) < std::abs(tensor[i]) * share;
    const int sign = !sent ? 0 : tensor[i] < 0 ? -1 : 1;
    payload[4 + i] = static_cast<std::byte>(sign);
  }
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  const float scale = get_float(payload, 0);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = scale * static_cast<float>(static_cast<std::int8_t>(payload[4 + i]));
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  const double scale = static_cast<double>(scale_of(tensor));
  return std::max(scale, static_cast<double>(largest_magnitude(tensor)) - scale) * 1.00001;
}

}  // namespace

const Compressor kTernGrad{.name = "terngrad",
                           .cost = by_passes(4, 6),
                           .size = scaled_bytes<1>,
                           .compress = compress,
                           .decompress = decompress,
                           .error = error};

}  // namespace ghostrank
