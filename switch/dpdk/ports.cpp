#include "switch/dpdk/ports.h"

#include <cstring>

#include "switch/wire/switchml.h"

namespace ghostrank::dpdk {
std::span<const std::byte> PortSet::receive(int port) {
  if (idle()) return {};
  while (!waits_ && ports_.next(waiting_)) {
    PortCounters& c = counters[waiting_.port];
    ++c.received;
    c.received_bytes += waiting_.frame.size();
    waits_ = switchml::whole(waiting_.frame) && waiting_.frame.size() <= kFrameRoom;
    if (!waits_) ++(waiting_.frame.size() > kFrameRoom ? c.overlong : c.short_frames);
  }
  if (!waits_ || waiting_.port != port) {
    ++in_vain_;
    return {};
  }
  in_vain_ = 0;
  gave_ = true;
  waits_ = false;
  return switchml::without_padding(waiting_.frame);
}

// A result may have grown from a chunk that was padded.
void PortSet::send(int port, std::span<const std::byte> frame) {
  if (switchml::whole(frame)) frame = switchml::without_padding(frame);
  PortCounters& c = counters[port];
  ++c.sent;
  c.sent_bytes += frame.size();
  std::memcpy(ports_.frame(port, frame.size()), frame.data(), frame.size());
}

}  // namespace ghostrank::dpdk
