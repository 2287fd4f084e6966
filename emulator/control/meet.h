// The meeting: process 0 listens, the others greet it, until all have come or the time is over.
// For control*, world.cpp and core_setup.cpp. Strays (wrong greetings, garbage, silence) are turned
// away and counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/control/frames.h"
#include "switch/fd.h"

namespace ghostrank {

struct Link {  // a connection to another process of the job
  int rank = 0;
  Fd socket;
  FrameBuffer in{kMaxHelloBytes};
  std::string hostname, boot_id;
};

struct Meeting {
  std::vector<Link> links;  // on process 0 one per other process, by rank; elsewhere one, to 0
  std::uint64_t strays = 0;
};

// Listens at the address and port of `world`; port 0: one that the kernel chooses. Throws
// Error(environment) when it cannot.
Fd listen_at(const World& world);
int port_of(const Fd& socket);

// Throws Error(environment) when somebody is missing or this process is refused.
Meeting meet_others(const World& world);

std::string build_of(const World& world);
std::string boot_id_of(const World& world);

}  // namespace ghostrank
