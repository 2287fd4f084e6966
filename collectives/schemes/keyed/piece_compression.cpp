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
  how.method->decompress(payload, shared_options(how, key, round), values);
  return values;
}

}  // namespace ghostrank
