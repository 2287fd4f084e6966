// A switch at work: on pcap files, or on network interfaces through packet sockets.
//
// Threading: the caller's thread; the switch belongs to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "switch/compiled.h"

namespace ghostrank::switchml {

// A port: an interface, or a file to read (may be empty: nothing comes) and one to write (may be
// empty: what leaves is only counted).
struct PortName {
  std::string interface;
  std::string in, out;
};

// "eth0", "IN.pcap:OUT.pcap", ":OUT.pcap", "IN.pcap:"; what contains a colon or ends in .pcap is a
// file.
PortName port_named(const std::string& text);

// Plays all frames of all files in the order of their time stamps, of equal ones by port. Throws
// std::runtime_error naming the file.
void run_on_files(CompiledSwitch& sw, const std::vector<PortName>& ports);

// Another descriptor that the loop watches: the control socket.
struct Watch {
  int fd = -1;
  std::function<void()> ready;
};

// Until `stop`. Throws std::system_error where an interface cannot be opened.
void run_on_interfaces(CompiledSwitch& sw, const std::vector<PortName>& ports,
                       const std::vector<Watch>& watches, const std::atomic<bool>& stop);

}  // namespace ghostrank::switchml
