// The counters of the kernel and the NIC for the interfaces that a job uses, to check its ledger
// against: bytes at the end of every iteration, all counters at both ends of a segment.
//
//   tx_bytes, rx_packets, …      sysfs: class/net/DEVICE/statistics; of an interface in another
//                                network namespace: its /proc/net/dev (net_table.h)
//   ethtool.NAME                 the driver (`ethtool -S`): pauses, drops, errors, congestion
//   rdma.PORT.NAME               sysfs: class/infiniband/*/ports/PORT/{counters,hw_counters} of the
//                                RDMA device behind DEVICE; data counters are in words of 4 bytes;
//                                not of interfaces in another namespace
//
// The counters are the machine's: they include other users of the interface. A counter that cannot
// be read is missing, never invented. Linux only. Units: bytes, packets. Threading: one owner.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/net_table.h"
#include "emulator/result/result.h"

namespace ghostrank {

// The interfaces with the address `address`; all interfaces if none has it.
std::vector<std::string> interfaces_of(const std::string& address);

struct CountedInterface {
  std::string network_namespace;  // named as in fabric.namespaces; empty: that of the process
  std::string device;
  auto operator<=>(const CountedInterface&) const = default;
};

// The interfaces used by a socket that binds to `address` inside a namespace. Throws
// Error(environment) if the namespace cannot be entered.
std::vector<CountedInterface> counted_interfaces(const std::string& network_namespace,
                                                 const std::string& address);

class InterfaceLog {
 public:
  // `sysfs`: where the kernel's is mounted. Throws Error(environment) if the namespace cannot be
  // entered.
  explicit InterfaceLog(CountedInterface interface, std::string sysfs = "/sys");

  void begin();                    // before the first iteration
  void mark();                     // at the end of an iteration; two short reads
  InterfaceReport end(Host host);  // after the last iteration

 private:
  ByteCounts bytes();
  Counters all();

  CountedInterface interface_;
  std::string sysfs_;
  std::optional<NetTable> table_;  // of an interface in another namespace
  Counters before_;
  std::vector<ByteCounts> marks_;  // at the beginning, then at the end of every iteration
};

}  // namespace ghostrank
