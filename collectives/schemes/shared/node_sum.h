// The elements that a worker holds of its rail's share of a call, by chunk: first its node's sums
// (of floats as float, of int32 as int32) or copies, then the result in the call's type.
//
// Without real data there is nothing to hold. Threading: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "collectives/schemes/shared/numbers.h"

namespace ghostrank {

class NodeSum {
 public:
  // `sums`: elements that come for one chunk are added; else there is one source of each chunk.
  void start(std::uint64_t chunks, std::uint64_t per_chunk, DataType type, bool sums) {
    type_ = type;
    sums_ = sums;
    const std::uint64_t stored = sums && is_float(type) ? sizeof(float) : bytes_of(type);
    per_chunk_ = (per_chunk * stored + 3) / 4;  // in words of 4 bytes
    words_.resize(chunks * per_chunk_);
    fresh_.assign(chunks, true);
  }
  void add(std::uint64_t chunk, std::span<const std::byte> elements) {
    if (!sums_) return put(chunk, elements);
    if (type_ == DataType::float32 || !is_float(type_)) return add_as(type_, chunk, elements);
    const std::vector<float> floats = floats_of(type_, elements);
    add_as(DataType::float32, chunk, std::as_bytes(std::span(floats)));
  }
  // The first `elements` of a chunk of floats that is still a sum.
  std::vector<float> floats(std::uint64_t chunk, std::uint64_t elements) const {
    std::vector<float> floats(elements);
    std::memcpy(floats.data(), words_.data() + chunk * per_chunk_, elements * sizeof(float));
    return floats;
  }
  // Sets a chunk to these bytes, and what is left of it to 0: a result, or elements that nobody
  // adds to.
  void put(std::uint64_t chunk, std::span<const std::byte> bytes) {
    const std::span all =
        std::as_writable_bytes(std::span(words_))
            .subspan(chunk * per_chunk_ * sizeof words_[0], per_chunk_ * sizeof words_[0]);
    std::memcpy(all.data(), bytes.data(), bytes.size());
    std::ranges::fill(all.subspan(bytes.size()), std::byte{0});
  }
  std::span<const std::int32_t> words(std::uint64_t chunk) const {
    return std::span(words_).subspan(chunk * per_chunk_, per_chunk_);
  }
  std::span<const std::byte> bytes(std::uint64_t chunk, std::uint64_t bytes) const {
    return std::as_bytes(words(chunk)).first(bytes);
  }

 private:
  // Elements of the type in which sums are held. The first ones of a chunk are its sum.
  void add_as(DataType type, std::uint64_t chunk, std::span<const std::byte> elements) {
    if (fresh_[chunk]) {
      fresh_[chunk] = false;
      return put(chunk, elements);
    }
    add_elements(type, reinterpret_cast<std::byte*>(words_.data() + chunk * per_chunk_),
                 elements.data(), elements.size() / bytes_of(type));
  }

  DataType type_{};
  bool sums_ = false;
  std::uint64_t per_chunk_ = 0;
  std::vector<std::int32_t> words_;
  std::vector<bool> fresh_;  // chunks that nothing was added to; their words are of earlier calls
};

}  // namespace ghostrank
