// Values at small indices. An index and references to its value stay valid until the value is taken
// out; the index that became free last is used first.
//
// Bound: 2^32 - 1 values. Memory grows to the largest number of values held at one time and is
// never given back. Threading: one owner.
#pragma once

#include <array>
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

  // Returns an index. Its value is the one of its last use, or a default one.
  std::uint32_t put_as_it_is() {
    if (!free_.empty()) {
      const std::uint32_t i = free_.back();
      free_.pop_back();
      return i;
    }
    if (size_ % kSlab == 0) slabs_.push_back(std::make_unique<Slab>());
    return size_++;
  }

  T take(std::uint32_t i) {
    drop(i);
    return std::move((*this)[i]);
  }

  void drop(std::uint32_t i) { free_.push_back(i); }

  // Prefetches the value whose index is used next.
  void prefetch_next() const {
    if (!free_.empty()) __builtin_prefetch(&(*this)[free_.back()], 1);
  }

  T& operator[](std::uint32_t i) { return slabs_[i / kSlab]->values[i % kSlab]; }
  const T& operator[](std::uint32_t i) const { return slabs_[i / kSlab]->values[i % kSlab]; }

 private:
  static constexpr std::uint32_t kSlab = 64;
  struct alignas(64) Slab {  // so that a value of 64 bytes is one cache line
    std::array<T, kSlab> values{};
  };
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::uint32_t size_ = 0;  // indices ever used
  std::vector<std::uint32_t> free_;
};

}  // namespace ghostrank
