// Quantile sketch (SketchML, Jiang et al., 2018), as GRACE sends it: elements are sorted into q
// buckets of equal counts; each element becomes the number of its bucket, which decodes to the
// bucket's mean.
//
// Payload: q means, then a byte an element (two where q >= 256). Error of an element: the width of
// the widest bucket. NaNs sort beyond infinity.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

std::uint64_t size(std::uint64_t elements, const CompressionOptions& options) {
  return 4 * static_cast<std::uint64_t>(options.quantiles) +
         elements * (options.quantiles < 256 ? 1 : 2);
}

// Indices of the tensor by value: keys that sort as floats do, with the index in the lower half.
std::vector<std::uint64_t> sorted(std::span<const float> tensor) {
  std::vector<std::uint64_t> keys(tensor.size());
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(tensor[i]);
    const std::uint32_t order = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
    keys[i] = static_cast<std::uint64_t>(order) << 32 | i;
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Calls visit(bucket, first, end) for each bucket: a range of sorted indices.
template <typename Visit>
void each_bucket(std::uint64_t elements, const CompressionOptions& options, const Visit& visit) {
  const auto buckets = static_cast<std::uint64_t>(options.quantiles);
  for (std::uint64_t b = 0; b < buckets; ++b)
    visit(b, b * elements / buckets, (b + 1) * elements / buckets);
}

std::size_t index_of(std::uint64_t key) { return key & 0xffffffffu; }

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const std::vector<std::uint64_t> keys = sorted(tensor);
  const bool narrow = options.quantiles < 256;
  std::byte* ids = payload + 4 * options.quantiles;
  each_bucket(tensor.size(), options, [&](std::uint64_t b, std::uint64_t i, std::uint64_t end) {
    double sum = 0;
    const auto count = static_cast<double>(end - i);
    for (; i < end; ++i) {
      const std::size_t at = index_of(keys[i]);
      sum += static_cast<double>(tensor[at]);
      const auto id = static_cast<std::uint16_t>(b);
      std::memcpy(ids + (narrow ? at : 2 * at), &id, narrow ? 1 : 2);  // little-endian
    }
    put_float(payload, static_cast<int>(b), count > 0 ? static_cast<float>(sum / count) : 0);
  });
}

void decompress(std::span<const std::byte> payload, const CompressionOptions& options,
                std::span<float> tensor) {
  const bool narrow = options.quantiles < 256;
  const std::byte* ids = payload.data() + 4 * options.quantiles;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    std::uint16_t id = 0;
    std::memcpy(&id, ids + (narrow ? i : 2 * i), narrow ? 1 : 2);
    tensor[i] = id < options.quantiles ? get_float(payload, id) : 0.0f;
  }
}

double error(std::span<const float> tensor, const CompressionOptions& options) {
  const std::vector<std::uint64_t> keys = sorted(tensor);
  double widest = 0;
  each_bucket(tensor.size(), options, [&](std::uint64_t, std::uint64_t i, std::uint64_t end) {
    if (i == end) return;
    widest = std::max(widest, static_cast<double>(tensor[index_of(keys[end - 1])]) -
                                  static_cast<double>(tensor[index_of(keys[i])]));
  });
  return widest + 1e-7 * static_cast<double>(largest_magnitude(tensor));
}

}  // namespace

const Compressor kSketch{.name = "sketch",
                         .cost = fitted(270),
                         .size = size,
                         .compress = compress,
                         .decompress = decompress,
                         .error = error,
                         .most_elements = kMostIndexed};

}  // namespace ghostrank
