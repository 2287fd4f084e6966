// Takes the frames that leave a switch.
//
// Threading: one owner.
#pragma once

#include <cstddef>

namespace ghostrank::switchml {

class Transmitter {
 public:
  virtual ~Transmitter() = default;
  // Room for a frame of `bytes` at `port`; never null. Fill it before the next call.
  virtual std::byte* frame(int port, std::size_t bytes) = 0;
};

}  // namespace ghostrank::switchml
