// How long the kernel let the calling thread wait in the run queue of a core.
//
// Threading: made and used by one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "switch/ports/fd.h"

namespace ghostrank {

class RunDelay {
 public:
  RunDelay();
  // Nanoseconds so far; empty where the kernel does not tell.
  std::optional<std::int64_t> so_far_ns() const;

 private:
  Fd schedstat_;
};

}  // namespace ghostrank
