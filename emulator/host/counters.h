// What the kernel and the NIC count on the interfaces that a job uses, so that its ledger can be
// held against them: bytes at the end of every iteration, everything at both ends of a segment.
//
//   tx_bytes, rx_packets, …      sysfs: class/net/DEVICE/statistics; of an interface in another
//                                network namespace: its /proc/net/dev (net_table.h)
//   ethtool.NAME                 the driver (`ethtool -S`): pauses, drops, errors, congestion
//   rdma.PORT.NAME               sysfs: class/infiniband/*/ports/PORT/{counters,hw_counters} of the
//                                RDMA device that stands behind DEVICE; data counters in words of
//                                4; not of interfaces in another namespace
//
// Counters are of the machine: what else uses the interface is in them. What cannot be read is
// missing, never invented. Linux only. Units: bytes, packets. Threading: one owner.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/net_table.h"
#include "emulator/result/result.h"

namespace ghostrank {

// The interfaces whose address is `address`; all there are when none has it.
std::vector<std::string> interfaces_of(const std::string& address);

struct CountedInterface {
  std::string network_namespace;  // as fabric.namespaces names it; empty: that of the process
  std::string device;
  auto operator<=>(const CountedInterface&) const = default;
};

// The interfaces that whoever binds to `address` inside a namespace uses. Throws Error(environment)
// for a namespace that cannot be entered.
std::vector<CountedInterface> counted_interfaces(const std::string& network_namespace,
                                                 const std::string& address);

class InterfaceLog {
 public:
  // Throws Error(environment) for a namespace that cannot be entered.
  // `sysfs`: where the kernel's is mounted.
  explicit InterfaceLog(CountedInterface interface, std::string sysfs = "/sys");

  void begin();                   // before the first iteration
  void mark();                    // an iteration has ended; two short reads
  InterfaceReport end(int host);  // after the last

 private:
  ByteCounts bytes();
  Counters all();

  CountedInterface interface_;
  std::string sysfs_;
  std::optional<NetTable> table_;  // of the other namespace
  Counters before_;
  std::vector<ByteCounts> marks_;  // the beginning, then the end of every iteration
};

}  // namespace ghostrank
