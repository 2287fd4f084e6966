// What the kernel and the NIC count on the interfaces that a job uses, so that its ledger can be
// held against them: bytes at the end of every iteration, everything at both ends of a segment.
//
//   tx_bytes, rx_packets, …      sysfs: class/net/DEVICE/statistics
//   ethtool.NAME                 the driver (`ethtool -S`): pauses, drops, errors, congestion
//   rdma.PORT.NAME               sysfs: class/infiniband/*/ports/PORT/{counters,hw_counters} of the
//                                RDMA device that stands behind DEVICE; data counters in words of 4
//
// Counters are of the machine: what else uses the interface is in them. What cannot be read is
// missing, never invented. Linux only. Units: bytes, packets. Threading: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/result.h"

namespace ghostrank {

// Where the kernel's sysfs is: $GHOSTRANK_SYSFS, else /sys.
std::string sysfs_root();

// The interfaces whose address is `address`; all there are when none has it.
std::vector<std::string> interfaces_of(const std::string& address);

using Counters = std::map<std::string, std::uint64_t>;
Counters read_counters(const std::string& device, const std::string& sysfs);

class InterfaceLog {
 public:
  explicit InterfaceLog(std::string device, std::string sysfs = sysfs_root());

  void begin();                         // before the first iteration
  void mark();                          // an iteration has ended; two short reads
  InterfaceReport end(int host) const;  // after the last

 private:
  std::optional<std::uint64_t> read(const char* counter) const;
  ByteCounts bytes() const { return {read("tx_bytes"), read("rx_bytes")}; }

  std::string device_, sysfs_;
  Counters before_;
  std::vector<ByteCounts> marks_;  // the beginning, then the end of every iteration
};

}  // namespace ghostrank
