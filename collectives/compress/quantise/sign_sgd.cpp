// signSGD and Signum (Bernstein et al., 2018), as GRACE sends them: a byte for each sign, 1 where
// x >= 0. Every payload is a vote, and the result is the sign of the votes' sum. Signum sends signs
// of a momentum, which is state of the rank: payloads are the same.
//
// Error of an element: it becomes 1 or -1, whatever it was.
#include <algorithm>
#include <cmath>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

void compress(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  for (std::size_t i = 0; i < tensor.size(); ++i) payload[i] = std::byte(tensor[i] >= 0 ? 1 : 0);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions&,
                std::span<float> tensor) {
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = payload[i] == std::byte{0} ? -1.0f : 1.0f;
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  return 1 + static_cast<double>(largest_magnitude(tensor));
}

constexpr Compressor signs(std::string_view name, const CompressionCost& cost) {
  Compressor method;
  method.name = name;
  method.cost = cost;
  method.size = scaled_bytes<0>;
  method.compress = compress;
  method.decompress = decompress;
  method.error = error;
  method.majority = true;
  return method;
}

}  // namespace

const Compressor kSignSgd = signs("signsgd", fitted(22.7));
const Compressor kSignum = signs("signum", fitted(44.9));

}  // namespace ghostrank
