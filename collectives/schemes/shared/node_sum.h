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
    per_chunk_ = (per_chunk * stored + kWord - 1) / kWord * kWord;
    store_.resize(chunks * per_chunk_);
    fresh_.assign(chunks, true);
  }
  void add(std::uint64_t chunk, std::span<const std::byte> elements) {
    if (!sums_) return put(chunk, elements);
    if (type_ == DataType::float32 || !is_float(type_)) return add_as(type_, chunk, elements);
    const std::vector<float> floats = floats_of(type_, elements);
    add_as(DataType::float32, chunk, std::as_bytes(std::span(floats)));
  }
  // A chunk of floats that is still a sum; 0 after its last element.
  std::span<const float> floats(std::uint64_t chunk) const { return as<const float>(chunk); }
  // The same, to set a chunk of float32 to its result.
  std::span<float> floats(std::uint64_t chunk) { return as<float>(chunk); }
  // Sets a chunk to these bytes, which are a result or elements that nobody adds to, and the rest
  // of the chunk to 0.
  void put(std::uint64_t chunk, std::span<const std::byte> bytes) {
    const std::span all = std::span(store_).subspan(chunk * per_chunk_, per_chunk_);
    std::memcpy(all.data(), bytes.data(), bytes.size());
    std::ranges::fill(all.subspan(bytes.size()), std::byte{0});
  }
  std::span<const std::int32_t> words(std::uint64_t chunk) const {
    return as<const std::int32_t>(chunk);
  }
  std::span<const std::byte> bytes(std::uint64_t chunk, std::uint64_t bytes) const {
    return std::span(store_).subspan(chunk * per_chunk_, bytes);
  }

 private:
  static constexpr std::uint64_t kWord = 4;

  // The chunk as numbers of 4 bytes, for which an array of std::byte provides storage.
  template <typename T>
  std::span<T> as(std::uint64_t chunk) const {
    static_assert(sizeof(T) == kWord);
    auto* const first = const_cast<std::byte*>(store_.data() + chunk * per_chunk_);
    return {reinterpret_cast<T*>(first), per_chunk_ / kWord};
  }

  // Adds elements of the type in which sums are held. The first ones of a chunk begin its sum.
  void add_as(DataType type, std::uint64_t chunk, std::span<const std::byte> elements) {
    if (fresh_[chunk]) {
      fresh_[chunk] = false;
      return put(chunk, elements);
    }
    add_elements(type, store_.data() + chunk * per_chunk_, elements.data(),
                 elements.size() / bytes_of(type));
  }

  DataType type_{};
  bool sums_ = false;
  std::uint64_t per_chunk_ = 0;   // bytes, whole words
  std::vector<std::byte> store_;  // by chunk
  std::vector<bool> fresh_;  // chunks that nothing was added to; their bytes are of earlier calls
};

}  // namespace ghostrank
