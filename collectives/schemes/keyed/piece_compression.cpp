#include "collectives/schemes/keyed/piece_compression.h"

#include "collectives/common/dice.h"

namespace ghostrank {
namespace {

// Draws that all ends share in a round of a key.
CompressionOptions shared_options(const PieceCompression& how, std::uint32_t key,
                                  std::uint64_t round) {
  CompressionOptions options = how.options;
  options.shared_seed = checking::mix(how.options.shared_seed + checking::mix(key) + round);
  return options;
}

}  // namespace

CompressionOptions PieceCodec::options(std::uint64_t round) const {
  CompressionOptions own = shared_options(how_, key_, round);
  own.seed = checking::mix(own.shared_seed + end_ + 1);
  return own;
}

std::vector<float> PieceCodec::decompressed(const PieceCompression& how, std::uint32_t key,
                                            std::uint64_t round, std::span<const std::byte> payload,
                                            std::uint64_t elements) {
  std::vector<float> values(elements);
  const CompressionOptions options = shared_options(how, key, round);
  // Another process made the payload. Where data decide its length, the method sees whether it is
  // whole; another payload of a wrong length stands for zeros, which a check of values finds.
  const bool fits =
      how.method->measure || payload.size() == payload_bytes(*how.method, elements, options);
  if (fits) how.method->decompress(payload, options, values);
  return values;
}

}  // namespace ghostrank
