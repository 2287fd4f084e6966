// Addresses of the link layer, of interfaces in the calling thread's network namespace.
//
// Errors: Error(environment) with the remedy. Threading: any; keeps no state.
#pragma once

#include <string>

namespace ghostrank {

struct NetworkDevice {
  std::string name;  // "eth0"
  std::string mac;   // "02:00:00:00:00:01"
};

// The interface that has the IPv4 address.
NetworkDevice device_of_address(const std::string& address);

// Makes the kernel send packets for `address` to `mac` on the interface, without ARP. The neighbour
// entry stays until the interface goes or another replaces it. Needs CAP_NET_ADMIN.
void set_neighbour(const std::string& device, const std::string& address, const std::string& mac);

// Makes the kernel compute checksums and cut segments itself, and join none, so that every frame on
// the interface is as a wire would carry it. Needs CAP_NET_ADMIN.
void turn_offloads_off(const std::string& device);

}  // namespace ghostrank
