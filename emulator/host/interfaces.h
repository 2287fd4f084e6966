// The network interfaces of this machine: names, addresses and rates. Linux only; a fact that
// cannot be read is empty or 0, never invented.
//
// Units: rates in bits per second. Threading: reads the kernel's tables, keeps no state.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct Interface {
  std::string name;
  std::vector<std::string> addresses;  // IPv4 first, then IPv6 without the link-local ones
  double rate_bps = 0;                 // 0: unknown
  int numa_node = -1;                  // -1: unknown or none, for instance of a virtual interface
  bool up = false;
};

// Sorted by name.
std::vector<Interface> list_interfaces();

// "eth0 (10.0.0.1, 100 Gb/s), lo (127.0.0.1, rate unknown)", for messages.
std::string interfaces_text(const std::vector<Interface>& interfaces);

// The address of interface `device`. If the interface does not exist, is down or has no address,
// throws Error(environment) that begins with `where` and lists the interfaces.
std::string address_of_device(const std::string& device, const std::string& where);

// An address of this machine that the machines `others` can reach: the one that routes to the first
// of them on another machine, else that of the default route, else the only address that is not
// loopback. Throws Error(environment) if there is none, or several and no way to choose.
std::string address_towards_any_of(const std::vector<std::string>& others);

// True if `name` (a host name or an address) is an address of this machine.
bool is_address_here(const std::string& name);

}  // namespace ghostrank
