// Counts how much of its machine's memory a helper holds, and reports it whenever it grows.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <utility>

#include "collectives/agent.h"

namespace ghostrank {

class HeldBytes {
 public:
  void at_least(Io& io, std::uint64_t bytes) {
    if (bytes > held_) io.hold(bytes - std::exchange(held_, bytes));
  }

 private:
  std::uint64_t held_ = 0;
};

}  // namespace ghostrank
