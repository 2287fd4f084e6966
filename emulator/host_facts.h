// Facts about the machine this process runs on. Linux only; what cannot be read is empty, never
// invented.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/result.h"

namespace ghostrank {

std::string host_name();
std::uint64_t resident_bytes();
std::uint64_t available_memory_bytes();  // 0 where unknown
int usable_cores();                      // of the inherited affinity mask

// The local address from which `remote` (a name or an address) is reached; empty if it cannot be
// told.
std::string local_address_towards(const std::string& remote);

// Byte counters of every network interface, from `root`/class/net (the default is the kernel's
// sysfs).
std::vector<InterfaceReport> read_interfaces(int host, const std::string& root = "/sys");
// What passed between two readings; interfaces that did not move are left out.
std::vector<InterfaceReport> difference(const std::vector<InterfaceReport>& before,
                                        const std::vector<InterfaceReport>& after);

}  // namespace ghostrank
