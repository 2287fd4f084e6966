// The kernel's table of a network namespace's interfaces and their counters (/proc/net/dev). sysfs
// always shows the namespace that it was mounted in. This table belongs to the namespace of the
// thread that opened it, even after that thread has left: so one visit to a namespace is enough to
// read its interfaces every iteration.
//
// Units: bytes, packets. Threading: one owner.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>

namespace ghostrank {

using Counters = std::map<std::string, std::uint64_t>;

class NetTable {
 public:
  // The table of the calling thread's namespace.
  explicit NetTable(const std::string& file = "/proc/thread-self/net/dev") : file_(file) {}

  // tx_bytes, rx_packets, … of a device, by sysfs's names; empty if there is no such device.
  Counters of(const std::string& device);

 private:
  std::ifstream file_;
};

}  // namespace ghostrank
