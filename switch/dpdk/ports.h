// Frames between the ports of a switch and those of a pipeline.
//
// A frame whose IPv4 header claims more bytes than there are never gets in: the pipeline's parser
// does not look at lengths and would read beyond it. A frame that leaves longer than it may be is
// dropped too. Both are counted. What follows an IPv4 packet in its frame stays outside: the
// pipeline would hand it on behind whatever the packet becomes.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "switch/frame_ports.h"

namespace ghostrank::dpdk {

inline constexpr std::size_t kFrameRoom = 2048;  // bytes of a frame in the pipeline

struct PortCounters {
  std::uint64_t received = 0, received_bytes = 0, sent = 0, sent_bytes = 0;
  std::uint64_t short_frames = 0, overlong = 0;
};

// A pipeline asks each of its ports in turn; frames come in one order for all of them.
class PortSet {
 public:
  explicit PortSet(switchml::FramePorts& ports)
      : counters(static_cast<std::size_t>(ports.count())), ports_(ports) {}

  int count() const { return ports_.count(); }
  // The next frame of all, if it came in at `port`; empty: none now. Valid until the next call.
  std::span<const std::byte> receive(int port);
  void send(int port, std::span<const std::byte> frame);
  // Calls of receive() since a frame was given; all ports asked in vain: nothing waits.
  int idle_polls() const { return idle_polls_; }

  std::vector<PortCounters> counters;  // by port

 private:
  switchml::FramePorts& ports_;
  switchml::Arrival waiting_;
  bool waits_ = false;  // it is still to be asked for
  int idle_polls_ = 0;
};

}  // namespace ghostrank::dpdk
