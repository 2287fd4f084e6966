// The frames that enter and leave a switch, read from the pcap files of its ports, as a table for
// people.
//
// Threading: pure function of files.
#pragma once

#include <string>
#include <vector>

#include "switch/ports/frame_ports.h"

namespace ghostrank {

// One line per frame, in order of time. At port p, ports[p].in holds the frames that came in and
// ports[p].out those that left (either may be empty). Copies of one result share a line. At most
// `most` lines. Throws std::runtime_error that names the file it cannot read.
std::string switch_show(const std::vector<switchml::PortName>& ports, std::size_t most);

}  // namespace ghostrank
