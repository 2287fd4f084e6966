// Interfaces as the ports of a switch through DPDK's AF_XDP driver: frames go past the kernel's
// network stack (copied where the interface's driver cannot do better: veth). Nothing can be waited
// for, so a switch on such ports never sleeps.
//
// Threading: one owner; DPDK's environment must have been started with arguments_for_xdp().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "switch/frame_ports.h"

namespace ghostrank::dpdk {

// What DPDK has to be started with for these interfaces.
std::vector<std::string> arguments_for_xdp(const std::vector<switchml::PortName>& ports);

// Throws std::system_error where an interface cannot be had.
std::unique_ptr<switchml::FramePorts> open_xdp(const std::vector<switchml::PortName>& ports);

}  // namespace ghostrank::dpdk
