// Frames between the ports of a switch and those of a pipeline.
//
// A frame whose IPv4 header announces more bytes than there are never enters: the pipeline's parser
// does not check lengths and would read beyond the frame. A frame longer than kFrameRoom does not
// enter either. An outgoing frame that is too long is dropped. All are counted. Bytes behind the
// IPv4 packet are cut off, because the pipeline would append them to whatever it makes of the
// packet.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "switch/ports/frame_ports.h"

namespace ghostrank::dpdk {

inline constexpr std::size_t kFrameRoom = 2048;  // bytes for a frame in the pipeline
inline constexpr std::size_t kGrowth = 1024;     // and before it, for a block that it gains

struct PortCounters {
  std::uint64_t received = 0, received_bytes = 0, sent = 0, sent_bytes = 0;
  std::uint64_t short_frames = 0, overlong = 0;  // overlong: more than kFrameRoom, both ways
};

// All ports share one order of frames, while a pipeline asks each of its ports in turn.
class PortSet {
 public:
  explicit PortSet(switchml::FramePorts& ports)
      : counters(static_cast<std::size_t>(ports.count())), ports_(ports) {}

  int count() const { return ports_.count(); }
  // The next frame, if it came in at `port`; empty: none now. Valid until the next call. If all
  // ports were asked in vain, the frames' source is not asked again before look_again(): a pipeline
  // without packets would do nothing else.
  std::span<const std::byte> receive(int port);
  void look_again() { in_vain_ = 0, gave_ = false; }
  bool idle() const { return in_vain_ > count(); }
  bool gave() const { return gave_; }  // a frame, since look_again()
  void send(int port, std::span<const std::byte> frame);

  std::vector<PortCounters> counters;  // by port

 private:
  switchml::FramePorts& ports_;
  switchml::Arrival waiting_;
  bool waits_ = false;  // waiting_ was not given yet
  bool gave_ = false;
  int in_vain_ = 0;  // calls of receive() since the last frame
};

}  // namespace ghostrank::dpdk
