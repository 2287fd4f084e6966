// What every NIC of the emulated cluster sends and receives in an iteration, summed over the pairs
// it is in.
//
// Units: bytes and messages per iteration. Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/result.h"

namespace ghostrank {

struct NicTraffic {
  int nic = 0;  // node * nics_per_node + nic
  double tx_bytes = 0, rx_bytes = 0, tx_messages = 0, rx_messages = 0;
};

// By NIC, those that neither send nor receive left out.
std::vector<NicTraffic> nic_traffic(std::span<const PairTraffic> pairs);

// "1,024 NICs send 7.4 GiB on average, the busiest (n0.nic7) 7.823 GiB"; empty: none sends.
std::string nic_line(std::span<const PairTraffic> pairs, int nics_per_node);

}  // namespace ghostrank
