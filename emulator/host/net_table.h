// The kernel's table of a network namespace's interfaces (/proc/net/dev), with what each has
// counted. sysfs shows the namespace that it was mounted in, whoever looks; this table is that of
// the thread that opened it, wherever that thread goes then: so a namespace is entered once, and
// its interfaces are read every iteration.
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
  // Of the namespace that the calling thread is in.
  explicit NetTable(const std::string& file = "/proc/thread-self/net/dev") : file_(file) {}

  // tx_bytes, rx_packets, … of a device, named as sysfs does; empty when it is not there.
  Counters of(const std::string& device);

 private:
  std::ifstream file_;
};

}  // namespace ghostrank
