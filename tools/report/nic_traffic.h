// Bytes and messages that each NIC of the emulated cluster sends and receives per iteration: summed
// from a plan's NIC pairs, and as one line of text.
//
// Units: bytes and messages per iteration. Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank {

// Sorted by NIC number, without NICs that neither send nor receive.
std::vector<NicTraffic> nic_traffic(std::span<const PairTraffic> pairs);

// "1,024 NICs send 7.4 GiB on average, the busiest (n0.nic7) 7.823 GiB"; empty when no NIC sends.
std::string nic_line(std::span<const NicTraffic> nics, int nics_per_node);

}  // namespace ghostrank
