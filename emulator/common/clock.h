// Emulated time. Every modelled quantity (compute delays, latencies, rates) is in emulated time, so
// dilation is a property of the clock alone: at dilation D, D nanoseconds of this machine are one
// emulated nanosecond.
//
// Real: runs with CLOCK_MONOTONIC from `zero_ns`. Virtual: always 0, because each shard keeps the
// time of a run in virtual time (Shard::now_).
// Threading: each shard has its own copy; it changes only between segments.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/common/monotonic.h"
#include "profiles/units.h"

namespace ghostrank {

class Clock {
 public:
  static Clock virtual_time() { return Clock(true, 0, 1); }
  static Clock real(std::int64_t zero_ns, double dilation) {
    return Clock(false, zero_ns, dilation);
  }

  Picoseconds now() const {
    if (virtual_) return 0;
    return static_cast<Picoseconds>(static_cast<double>(monotonic_ns() - zero_ns_) * ps_per_ns_);
  }

  // Wall time of an emulated duration on this machine.
  std::chrono::nanoseconds wall(Picoseconds t) const {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(t) / ps_per_ns_));
  }

 private:
  Clock(bool is_virtual, std::int64_t zero_ns, double dilation)
      : virtual_(is_virtual), zero_ns_(zero_ns), ps_per_ns_(1000.0 / dilation) {}

  bool virtual_;
  std::int64_t zero_ns_;
  double ps_per_ns_;
};

}  // namespace ghostrank
