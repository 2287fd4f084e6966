#include "emulator/host/run_delay.h"

#include <array>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace ghostrank {

RunDelay::RunDelay() : schedstat_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

std::optional<std::int64_t> RunDelay::so_far_ns() const {
  std::array<char, 96> text{};
  if (!schedstat_.is_open() || pread(schedstat_.get(), text.data(), text.size() - 1, 0) <= 0)
    return std::nullopt;
  unsigned long long ran = 0, waited = 0;
  if (std::sscanf(text.data(), "%llu %llu", &ran, &waited) != 2) return std::nullopt;
  return static_cast<std::int64_t>(waited);
}

}  // namespace ghostrank
