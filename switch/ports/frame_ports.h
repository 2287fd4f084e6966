// The frames at the ports of a switch, whatever its target: from pcap files, or from network
// interfaces through packet sockets or AF_XDP.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "switch/compiled/transmitter.h"

namespace ghostrank::switchml {

// A port: an interface; or a file to read (empty: no input) and a file to write (empty: outgoing
// frames are only counted).
struct PortName {
  std::string interface;
  std::string in, out;
  bool xdp = false;  // interface through AF_XDP (dpdk/xdp_ports.h), not a packet socket
};

// Parses "eth0", "xdp:eth0", "IN.pcap:OUT.pcap", ":OUT.pcap", "IN.pcap:". Any other text with a
// colon or ending in .pcap names files.
PortName port_named(const std::string& text);

struct Arrival {
  int port = 0;
  std::span<const std::byte> frame;  // valid until the next call of next()
};

class FramePorts : public Transmitter {
 public:
  virtual int count() const = 0;
  // Gives the next frame; false: none now. Fills `arrival` in place, because a copy would show at
  // 100 ns a packet.
  virtual bool next(Arrival& arrival) = 0;
  // Sends all frames that frame() gave room for and that are not sent yet.
  virtual void flush() = 0;
  // Writes the buffered frames; call it once, at the end. Throws std::runtime_error naming the
  // file.
  virtual void finish() = 0;
  // True if no more frames will come.
  virtual bool finished() const = 0;
  // Descriptors that become readable when a frame arrives; empty: next() never needs to wait.
  virtual std::vector<int> descriptors() const = 0;
};

// Gives the frames of all files in the order of their time stamps, and by port if these are equal.
// An outgoing frame gets the time stamp of the last incoming one. Throws std::runtime_error naming
// the file.
std::unique_ptr<FramePorts> open_files(const std::vector<PortName>& ports);

// Throws std::system_error if an interface cannot be opened.
std::unique_ptr<FramePorts> open_interfaces(const std::vector<PortName>& ports);

// As above, with one object per core. The kernel distributes arriving frames: a SwitchML packet to
// core (slot modulo `shards`), all other frames to the first core.
std::vector<std::unique_ptr<FramePorts>> open_interfaces(const std::vector<PortName>& ports,
                                                         int shards);

}  // namespace ghostrank::switchml
