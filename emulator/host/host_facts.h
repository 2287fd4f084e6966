// Facts about the machine of this process. Linux only; a fact that cannot be read is empty, never
// invented.
#pragma once

#include <cstdint>
#include <string>

namespace ghostrank {

std::string host_name();
std::string cpu_model();       // from /proc/cpuinfo: "Intel(R) Xeon(R) Platinum 8481C"
std::string kernel_version();  // "Linux 6.1.0-18-amd64 x86_64"
std::uint64_t resident_bytes();
int usable_cores();  // CPUs in the calling thread's affinity mask

// The local address from which packets to `remote` (a name or an address) leave; empty: unknown.
std::string local_address_towards(const std::string& remote);

}  // namespace ghostrank
