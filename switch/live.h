// A switch at work: takes what its ports give until they have no more, or until told to stop.
//
// Threading: the caller's thread; the switch and the ports belong to it.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "switch/compiled.h"
#include "switch/frame_ports.h"

namespace ghostrank::switchml {

// Another descriptor that the loop watches: the control socket.
struct Watch {
  int fd = -1;
  std::function<void()> ready;
};

void run(CompiledSwitch& sw, FramePorts& ports, const std::vector<Watch>& watches,
         const std::atomic<bool>& stop);

// Serves the watches that are ready.
void serve(const std::vector<Watch>& watches);

// Waits until a frame may have come or a tenth of a second has passed; serves the watches.
void wait_for(const FramePorts& ports, const std::vector<Watch>& watches);

}  // namespace ghostrank::switchml
