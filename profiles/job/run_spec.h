// How long a job is played, and how.
//
// Threading: plain values.
#pragma once

#include <cstdint>

namespace ghostrank {

// When the measured iterations end, if not after a given number: with one of the two, at least
// RunSpec::iterations are played.
struct RunEnd {
  double duration = 0;       // seconds: of the wall clock, on fabric virtual emulated; 0: none
  double ci95 = 0;           // half of the mean step's 95 % interval over the mean; 0: none
  double max_seconds = 600;  // wall, beside ci95

  bool is_open() const { return duration > 0 || ci95 > 0; }
};

struct RunSpec {
  int iterations = 5;
  int warmup = 1;
  double min_seconds = 0;  // wall time; more iterations are played if they end sooner
  RunEnd end;
  bool verify = false;
  std::uint64_t seed = 1;
  double jitter = 0;            // relative standard deviation of compute delays, lognormal
  double compute_slowdown = 0;  // share by which communication beside it prolongs compute
  double stall_timeout_s = 60;
  int probe_ms = 200;  // load the fabric so long before the start; 0: not at all
  int shards = 1;      // engine threads of this process; 0: auto
};

}  // namespace ghostrank
