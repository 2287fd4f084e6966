// The rendezvous: process 0 listens and the others greet it, until all have come or the time is
// over. Used by control/, assemble/core_setup.cpp and tools/watch/outcome.cpp. Turns strays (wrong
// greetings, garbage, silence) away and counts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/control/frames.h"
#include "switch/ports/fd.h"

namespace ghostrank {

struct ControlLink {  // a connection to another process of the job
  int rank = 0;
  Fd socket;
  FrameBuffer in{kMaxHelloBytes};
  std::string hostname, boot_id;
};

struct Meeting {
  std::vector<ControlLink>
      links;  // on process 0 to each other process, by rank; elsewhere to 0 alone
  std::uint64_t strays = 0;
};

// Where process 0 listens, as "10.0.0.1:29500" or "[fe80::1]:29500".
std::string meeting_point(const World& world);

// Listens at the address and port of `world`; with port 0 the kernel chooses one. Throws
// Error(environment) if that fails.
Fd listen_at(const World& world);
int port_of(const Fd& socket);

// Throws Error(environment) if a process is missing or this one is refused.
Meeting meet_others(const World& world);

std::string build_of(const World& world);
std::string boot_id_of(const World& world);

}  // namespace ghostrank
