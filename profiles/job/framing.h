// Framings by name.
//
// Threading: a pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiles/job/job.h"

namespace ghostrank {

// The bytes that Ethernet (with its gap) and the protocols on it add: ethernet, tcp, rocev2, udp;
// of any other name none. `mtu`: bytes of the largest IP packet.
Framing framing_named(std::string_view name, std::uint32_t mtu);

}  // namespace ghostrank
