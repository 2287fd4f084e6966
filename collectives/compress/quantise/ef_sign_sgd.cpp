// EF-signSGD (Karimireddy et al., 2019): the sign of each element times the mean magnitude. It is
// meant to be used with error feedback.
//
// Payload: the mean, then a byte an element, 1 where x >= 0. Error of an element: at most the
// largest magnitude, or the mean.
#include <algorithm>
#include <cmath>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

void compress(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  put_float(payload, 0, static_cast<float>(mean_magnitude(tensor)));
  for (std::size_t i = 0; i < tensor.size(); ++i)
    payload[4 + i] = std::byte(tensor[i] >= 0 ? 1 : 0);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  const float mean = get_float(payload, 0);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = payload[4 + i] == std::byte{0} ? -mean : mean;
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  const double mean = mean_magnitude(tensor);
  return 1.00001 * std::max(mean, static_cast<double>(largest_magnitude(tensor)));
}

}  // namespace

const Compressor kEfSignSgd{.name = "efsignsgd",
                            .cost = by_passes(2, 3),
                            .size = scaled_bytes<1>,
                            .compress = compress,
                            .decompress = decompress,
                            .error = error};

}  // namespace ghostrank
