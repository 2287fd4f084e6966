// Framings by name.
//
// Threading: a pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiles/job/fabric_spec.h"

namespace ghostrank {

// The bytes that Ethernet (with its gap) and the protocols on it add: ethernet, tcp, rocev2, udp;
// of any other name none. `mtu`: bytes of the largest IP packet; `path_mtu`: of a message in each
// packet of rocev2, 0: the largest that fits, of 1024 and 4096.
Framing framing_named(std::string_view name, std::uint32_t mtu, std::uint32_t path_mtu = 0);
// As the key fabric.path_mtu says it; 0: auto, or none.
std::uint32_t path_mtu_of(std::string_view text);
// In an IP packet of rocev2, beside the bytes of a message: IP, UDP, the base header, the address
// header that a message's first packet has, and a checksum.
inline constexpr std::uint32_t kRoceHeaders = 20 + 8 + 12 + 16 + 4;

}  // namespace ghostrank
