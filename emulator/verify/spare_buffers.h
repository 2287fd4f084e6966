// Returned buffers, kept for the next caller that needs one of the same size, because memory fresh
// from the kernel costs several times the time to fill it. The last buffer returned is the first
// one taken, because it is cached. Collectives repeat their sizes.
//
// Units: bytes. Bound: keeps at most kMostBytes. Threading: one owner.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

class SpareBuffers {
 public:
  // A buffer of that size with undefined content.
  Payload take(std::uint64_t bytes) {
    if (bytes >= kKept) {
      std::vector<Payload>& spare = by_size_[bytes];
      if (!spare.empty()) {
        Payload p = std::move(spare.back());
        spare.pop_back();
        kept_ -= bytes;
        return p;
      }
    }
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
  }

  void give(std::uint64_t bytes, Payload buffer) {
    if (!buffer || bytes < kKept || kept_ + bytes > kMostBytes) return;
    kept_ += bytes;
    by_size_[bytes].push_back(std::move(buffer));
  }

 private:
  static constexpr std::uint64_t kKept = 1 << 10;  // malloc keeps free lists of smaller ones
  static constexpr std::uint64_t kMostBytes = 1 << 30;
  std::unordered_map<std::uint64_t, std::vector<Payload>> by_size_;
  std::uint64_t kept_ = 0;
};

}  // namespace ghostrank
