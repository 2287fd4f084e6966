// What every NIC of the emulated cluster sends and receives in an iteration: of a plan, summed over
// the pairs it is in; in words.
//
// Units: bytes and messages per iteration. Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank {

// By NIC, those that neither send nor receive left out.
std::vector<NicTraffic> nic_traffic(std::span<const PairTraffic> pairs);

// "1,024 NICs send 7.4 GiB on average, the busiest (n0.nic7) 7.823 GiB"; empty: none sends.
std::string nic_line(std::span<const NicTraffic> nics, int nics_per_node);

}  // namespace ghostrank
