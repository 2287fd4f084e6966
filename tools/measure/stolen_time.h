// Processor time that a virtual machine lost while something was measured.
//
// Threading: one owner.
#pragma once

#include <chrono>

namespace ghostrank::report {

// The share (0 to 1) of this machine's processor time that the hypervisor has given to others since
// construction, as the kernel counts it in /proc/stat (steps of 10 ms per core); 0 on bare metal.
class StolenTime {
 public:
  StolenTime();
  double share() const;

 private:
  std::chrono::steady_clock::time_point began_;
  double stolen_;  // of all cores, at construction
};

}  // namespace ghostrank::report
