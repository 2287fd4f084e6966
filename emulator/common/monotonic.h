// This machine's time in nanoseconds: CLOCK_MONOTONIC, which steady_clock reads, too. All processes
// on one kernel share it.
#pragma once

#include <cstdint>
#include <ctime>

namespace ghostrank {

inline std::int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// CPU time of the calling thread.
inline std::int64_t thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

}  // namespace ghostrank
