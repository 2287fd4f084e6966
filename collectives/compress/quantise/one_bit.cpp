// 1-bit SGD (Seide et al., 2014) as GRACE sends it: a byte for each sign, and the means of the
// negative elements and of the others, which the signs are decoded to.
//
// Payload: both means, then a byte an element, 1 where x < 0. Error of an element: how far the
// elements of its sign spread.
#include <algorithm>
#include <cmath>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

void compress(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  double negative = 0, other = 0;
  std::uint64_t negatives = 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const bool below = tensor[i] < 0;
    payload[8 + i] = std::byte(below ? 1 : 0);
    (below ? negative : other) += static_cast<double>(tensor[i]);
    negatives += below ? 1 : 0;
  }
  const auto mean = [](double sum, std::uint64_t count) {
    return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
  };
  put_float(payload, 0, mean(negative, negatives));
  put_float(payload, 1, mean(other, tensor.size() - negatives));
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  const float negative = get_float(payload, 0), other = get_float(payload, 1);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = payload[8 + i] == std::byte{0} ? other : negative;
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  return 1.00001 * static_cast<double>(largest_magnitude(tensor));
}

}  // namespace

const Compressor kOneBit{.name = "onebit",
                         .cost = fitted(32.4),
                         .size = scaled_bytes<2>,
                         .compress = compress,
                         .decompress = decompress,
                         .error = error};

}  // namespace ghostrank
