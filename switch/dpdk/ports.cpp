#include "switch/dpdk/ports.h"

#include <cstring>

#include "switch/switchml.h"

namespace ghostrank::dpdk {
std::span<const std::byte> PortSet::receive(int port) {
  while (!waiting_) {
    waiting_ = ports_.next();
    if (!waiting_) break;
    PortCounters& c = counters[static_cast<std::size_t>(waiting_->port)];
    ++c.received;
    c.received_bytes += waiting_->frame.size();
    if (switchml::whole(waiting_->frame) && waiting_->frame.size() <= kFrameRoom) break;
    ++c.short_frames;
    waiting_.reset();
  }
  if (!waiting_ || waiting_->port != port) {
    ++idle_polls_;
    return {};
  }
  idle_polls_ = 0;
  const std::span<const std::byte> frame = switchml::without_padding(waiting_->frame);
  waiting_.reset();
  return frame;
}

void PortSet::send(int port, std::span<const std::byte> frame) {
  PortCounters& c = counters[static_cast<std::size_t>(port)];
  ++c.sent;
  c.sent_bytes += frame.size();
  std::memcpy(ports_.frame(port, frame.size()), frame.data(), frame.size());
}

}  // namespace ghostrank::dpdk
