// The loop of a running switch: it handles what its ports give until they have no more, or until
// told to stop.
//
// Threading: the caller's thread; the switch and the ports belong to it.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "switch/compiled/compiled.h"
#include "switch/ports/frame_ports.h"

namespace ghostrank::switchml {

// Another descriptor that the loop watches, for example the control socket; `ready` serves it.
struct Watch {
  int fd = -1;
  std::function<void()> ready;
};

void run(CompiledSwitch& sw, FramePorts& ports, const std::vector<Watch>& watches,
         const std::atomic<bool>& stop);

// Calls `ready` of every watch whose descriptor is readable; does not wait.
void serve(const std::vector<Watch>& watches);

// Waits until a frame may have come or 0.1 s has passed, and serves the watches.
void wait_for(const FramePorts& ports, const std::vector<Watch>& watches);

}  // namespace ghostrank::switchml
