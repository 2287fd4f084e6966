// What stands at the ports of a switch, whichever target it is: pcap files, or network interfaces
// through packet sockets.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "switch/transmitter.h"

namespace ghostrank::switchml {

// A port: an interface, or a file to read (may be empty: nothing comes) and one to write (may be
// empty: what leaves is only counted).
struct PortName {
  std::string interface;
  std::string in, out;
  bool xdp = false;  // the interface through AF_XDP (dpdk/xdp_ports.h), not a packet socket
};

// "eth0", "xdp:eth0", "IN.pcap:OUT.pcap", ":OUT.pcap", "IN.pcap:"; what else contains a colon or
// ends in .pcap is a file.
PortName port_named(const std::string& text);

struct Arrival {
  int port = 0;
  std::span<const std::byte> frame;  // valid until the next call of next()
};

class FramePorts : public Transmitter {
 public:
  virtual int count() const = 0;
  // The next frame; false: nothing now. Filled in place: at 100 ns a packet a copy is seen.
  virtual bool next(Arrival& arrival) = 0;
  // Sends what frame() was given room for, where it is not sent yet.
  virtual void flush() = 0;
  // Writes what is still held back, once, at the end. Throws std::runtime_error naming the file.
  virtual void finish() = 0;
  // Nothing will come any more.
  virtual bool finished() const = 0;
  // Descriptors that become readable when something has come; empty: next() never waits.
  virtual std::vector<int> descriptors() const = 0;
};

// All frames of all files in the order of their time stamps, of equal ones by port; what leaves has
// the time stamp of what came last. Throws std::runtime_error naming the file.
std::unique_ptr<FramePorts> open_files(const std::vector<PortName>& ports);

// Throws std::system_error where an interface cannot be opened.
std::unique_ptr<FramePorts> open_interfaces(const std::vector<PortName>& ports);

// The same for several cores: each gets what its own has to do. The kernel deals out what arrives:
// a SwitchML packet by its slot, modulo `shards`, everything else to the first one.
std::vector<std::unique_ptr<FramePorts>> open_interfaces(const std::vector<PortName>& ports,
                                                         int shards);

}  // namespace ghostrank::switchml
