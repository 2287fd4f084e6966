// Interfaces as the ports of a switch through DPDK's AF_XDP driver: frames bypass the kernel's
// network stack (they are copied if the interface's driver supports no better: veth). There is no
// descriptor to wait for, so a switch on such ports never sleeps.
//
// Threading: one owner; DPDK's environment must have been started with arguments_for_xdp().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "switch/ports/frame_ports.h"

namespace ghostrank::dpdk {

// The arguments that DPDK must be started with for these interfaces. Throws std::system_error if an
// interface does not exist.
std::vector<std::string> arguments_for_xdp(const std::vector<switchml::PortName>& ports);

// Throws std::system_error if an interface cannot be opened.
std::unique_ptr<switchml::FramePorts> open_xdp(const std::vector<switchml::PortName>& ports);

}  // namespace ghostrank::dpdk
