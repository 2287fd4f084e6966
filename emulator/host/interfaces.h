// The network interfaces of this machine: what they are called, their addresses and rates. Linux
// only; what cannot be read is empty or 0, never invented.
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
  int numa_node = -1;                  // -1: unknown, or none, as of a virtual one
  bool up = false;
};

// In the order of their names.
std::vector<Interface> list_interfaces();

// "eth0 (10.0.0.1, 100 Gb/s), lo (127.0.0.1, rate unknown)", for messages.
std::string interfaces_text(const std::vector<Interface>& interfaces);

// The address on which `device` is bound. Throws Error(environment) that begins with `where` and
// names the interfaces there are when it does not exist, is down or has no address.
std::string address_of_device(const std::string& device, const std::string& where);

// An address of this machine that the machines `others` reach: towards the first of them that
// resolves to another machine, else that of the default route, else the only one there is that is
// not loopback. Throws Error(environment) when there is none, or several and no way to tell.
std::string address_towards_any_of(const std::vector<std::string>& others);

// True when `name` (a host name or an address) means an address of this machine.
bool is_address_here(const std::string& name);

}  // namespace ghostrank
