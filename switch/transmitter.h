// Where a switch's frames leave.
//
// Threading: one owner.
#pragma once

#include <cstddef>

namespace ghostrank::switchml {

class Transmitter {
 public:
  virtual ~Transmitter() = default;
  // Room for a frame at `port`, to be filled before the next call; never null.
  virtual std::byte* frame(int port, std::size_t bytes) = 0;
};

}  // namespace ghostrank::switchml
