// What a virtual machine did not get while something was measured.
#pragma once

#include <chrono>

namespace ghostrank::report {

// How much of the machine's cores the hypervisor has given to others since this was made, by the
// kernel, in steps of 10 ms of a core; 0 on bare metal.
class StolenTime {
 public:
  StolenTime();
  double share() const;

 private:
  std::chrono::steady_clock::time_point began_;
  double stolen_;  // seconds of cores
};

}  // namespace ghostrank::report
