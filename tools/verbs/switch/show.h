// What goes into a switch and what comes out, from the pcap files of its ports, for a person to
// read.
//
// Threading: pure function of files.
#pragma once

#include <string>
#include <vector>

#include "switch/frame_ports.h"

namespace ghostrank {

// One line a frame, in the order of time: at `ports[p]`, `in` has what came in at port p, `out`
// what left there (either may be empty). Copies of one result are one line. At most `most` lines.
// Throws std::runtime_error naming the file that cannot be read.
std::string switch_show(const std::vector<switchml::PortName>& ports, std::size_t most);

}  // namespace ghostrank
