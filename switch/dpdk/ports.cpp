#include "switch/dpdk/ports.h"

#include <cstring>

#include "switch/switchml.h"

namespace ghostrank::dpdk {
namespace {

// No shorter than an Ethernet header, nor than it says of itself.
bool whole(std::span<const std::byte> frame) {
  constexpr std::size_t kEthernet = 14, kIpv4 = 20;
  if (frame.size() < kEthernet || frame.size() > kFrameRoom) return false;
  if (switchml::load16(frame.data() + 12) != 0x0800) return true;
  return frame.size() >= kEthernet + kIpv4 &&
         frame.size() >= kEthernet + switchml::load16(frame.data() + kEthernet + 2);
}

}  // namespace

std::span<const std::byte> PortSet::receive(int port) {
  while (!waiting_) {
    waiting_ = ports_.next();
    if (!waiting_) break;
    PortCounters& c = counters[static_cast<std::size_t>(waiting_->port)];
    ++c.received;
    if (whole(waiting_->frame)) break;
    ++c.short_frames;
    waiting_.reset();
  }
  if (!waiting_ || waiting_->port != port) {
    ++idle_polls_;
    return {};
  }
  idle_polls_ = 0;
  const std::span<const std::byte> frame = waiting_->frame;
  waiting_.reset();
  return frame;
}

void PortSet::send(int port, std::span<const std::byte> frame) {
  ++counters[static_cast<std::size_t>(port)].sent;
  std::memcpy(ports_.frame(port, frame.size()), frame.data(), frame.size());
}

}  // namespace ghostrank::dpdk
