// BytePS's packing, of floats, from its source (f5df52f, byteps/common/compressor/impl).
//
//   onebit    a bit an element, set where x < 0, in words of 32 bits, the first element in the
//             highest one; then the mean magnitude m. Elements become m or -m. 4 ceil(n / 32) + 4
//             bytes
//   topk      k pairs of an index and a value, 4 bytes each
//   randomk   likewise, of k elements drawn with replacement; all ends draw alike, as BytePS's do
//             with one seed
#include "collectives/compress/byteps.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "collectives/common/dice.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"
#include "collectives/compress/selection.h"

namespace ghostrank {
namespace {

// ---- onebit ----

constexpr std::uint64_t kBits = 32;  // of a word

std::uint64_t words_of(std::uint64_t elements) { return (elements + kBits - 1) / kBits; }

// The bit of an element in its word.
std::uint32_t bit_of(std::uint64_t i) { return std::uint32_t{1} << (kBits - 1 - i % kBits); }

std::uint64_t packed_size(std::uint64_t elements, const CompressionOptions&) {
  return 4 * words_of(elements) + 4;
}

void pack(std::span<const float> tensor, const CompressionOptions&, std::byte* payload) {
  std::uint32_t word = 0;
  for (std::uint64_t i = 0; i < tensor.size(); ++i) {
    word |= tensor[i] < 0 ? bit_of(i) : 0;
    if (i % kBits < kBits - 1 && i + 1 < tensor.size()) continue;
    std::memcpy(payload + 4 * (i / kBits), &word, 4);
    word = 0;
  }
  const auto mean = static_cast<float>(mean_magnitude(tensor));
  std::memcpy(payload + 4 * words_of(tensor.size()), &mean, 4);
}

void unpack(std::span<const std::byte> payload, const CompressionOptions&,
            std::span<float> tensor) {
  float mean;
  std::memcpy(&mean, payload.data() + 4 * words_of(tensor.size()), 4);
  for (std::uint64_t i = 0; i < tensor.size(); ++i) {
    std::uint32_t word;
    std::memcpy(&word, payload.data() + 4 * (i / kBits), 4);
    tensor[i] = (word & bit_of(i)) != 0 ? -mean : mean;
  }
}

double error_of_signs(std::span<const float> tensor, const CompressionOptions&) {
  return 1.00001 * std::max(mean_magnitude(tensor), static_cast<double>(largest_magnitude(tensor)));
}

// ---- topk, randomk ----

struct Pair {
  std::uint32_t index;
  float value;
};
static_assert(sizeof(Pair) == 8);

std::uint64_t size_of_pairs(std::uint64_t elements, const CompressionOptions& options) {
  return sizeof(Pair) * kept_by_ratio(elements, options);
}

void put_pairs(std::span<const std::uint32_t> indices, std::span<const float> tensor,
               std::byte* payload) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Pair pair{indices[i], tensor[indices[i]]};
    std::memcpy(payload + i * sizeof(Pair), &pair, sizeof(Pair));
  }
}

void get_pairs(std::span<const std::byte> payload, const CompressionOptions&,
               std::span<float> tensor) {
  std::fill(tensor.begin(), tensor.end(), 0.0f);
  for (std::size_t at = 0; at + sizeof(Pair) <= payload.size(); at += sizeof(Pair)) {
    Pair pair;
    std::memcpy(&pair, payload.data() + at, sizeof(Pair));
    if (pair.index < tensor.size()) tensor[pair.index] = pair.value;
  }
}

void compress_largest(std::span<const float> tensor, const CompressionOptions& options,
                      std::byte* payload) {
  std::vector<std::byte> lists = payload_of(kTopK, tensor, options);  // values, then indices
  std::vector<std::uint32_t> indices(lists.size() / sizeof(Pair));
  std::memcpy(indices.data(), lists.data() + lists.size() / 2, lists.size() / 2);
  put_pairs(indices, tensor, payload);
}

std::vector<std::uint32_t> drawn(std::uint64_t elements, const CompressionOptions& options) {
  checking::Dice dice(options.shared_seed);
  std::vector<std::uint32_t> indices(kept_by_ratio(elements, options));
  for (std::uint32_t& index : indices) index = static_cast<std::uint32_t>(dice.below(elements));
  return indices;
}

void compress_drawn(std::span<const float> tensor, const CompressionOptions& options,
                    std::byte* payload) {
  put_pairs(drawn(tensor.size(), options), tensor, payload);
}

double largest_not_drawn(std::span<const float> tensor, const CompressionOptions& options) {
  std::vector<float> left(tensor.begin(), tensor.end());
  for (const std::uint32_t i : drawn(tensor.size(), options)) left[i] = 0;
  return static_cast<double>(largest_magnitude(left));
}

const std::array kForms{
    Compressor{.name = "onebit",
               .cost = kOneBit.cost,
               .size = packed_size,
               .compress = pack,
               .decompress = unpack,
               .error = error_of_signs},
    Compressor{.name = "topk",
               .cost = kTopK.cost,
               .size = size_of_pairs,
               .compress = compress_largest,
               .decompress = get_pairs,
               .error = kTopK.error,
               .kept = kept_by_ratio,
               .most_elements = kMostIndexed},
    Compressor{.name = "randomk",
               .cost = kRandomK.cost,
               .size = size_of_pairs,
               .compress = compress_drawn,
               .decompress = get_pairs,
               .error = largest_not_drawn,
               .kept = kept_by_ratio,
               .most_elements = kMostIndexed},
};

}  // namespace

const Compressor& byteps_form(const Compressor& method) {
  const auto form = std::find_if(kForms.begin(), kForms.end(),
                                 [&](const Compressor& f) { return f.name == method.name; });
  return form == kForms.end() ? method : *form;
}

}  // namespace ghostrank
