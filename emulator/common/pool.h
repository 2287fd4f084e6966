// Values at small indices that stay theirs until they are taken out; places are used anew, the last
// one left first. Values stay where they are: a reference holds until the value is taken out.
//
// Bound: 2^32 - 1 values; memory grows, by chunks, to the most that were in at one time and is
// kept. Threading: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ghostrank {

inline constexpr std::uint32_t kNil = ~0u;  // no index

template <typename T>
class Pool {
 public:
  std::uint32_t put(T value) {
    const std::uint32_t i = put_as_it_is();
    (*this)[i] = std::move(value);
    return i;
  }

  // A place with whatever was there before.
  std::uint32_t put_as_it_is() {
    if (!free_.empty()) {
      const std::uint32_t i = free_.back();
      free_.pop_back();
      return i;
    }
    if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<T[]>(kChunk));
    return size_++;
  }

  T take(std::uint32_t i) {
    drop(i);
    return std::move((*this)[i]);
  }

  void drop(std::uint32_t i) { free_.push_back(i); }

  T& operator[](std::uint32_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](std::uint32_t i) const { return chunks_[i / kChunk][i % kChunk]; }

 private:
  static constexpr std::uint32_t kChunk = 64;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::uint32_t size_ = 0;  // places that were ever taken
  std::vector<std::uint32_t> free_;
};

}  // namespace ghostrank
