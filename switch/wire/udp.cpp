#include "switch/wire/udp.h"

#include <algorithm>
#include <cstring>

namespace ghostrank::switchml {
namespace {

constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::size_t kShortestFrame = 60;  // without FCS
constexpr std::uint8_t kNoOptions = 0x45;   // version 4, five words
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::uint16_t kFragmentMask = 0xbfff;  // all bits but "do not fragment"

Address address(const std::byte* mac, const std::byte* ip, const std::byte* udp) {
  Address a{{}, load32(ip), load16(udp)};
  std::memcpy(a.mac.data(), mac, a.mac.size());
  return a;
}

}  // namespace

std::string text_of_ip(std::uint32_t ip) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8)
    text += (text.empty() ? "" : ".") + std::to_string(ip >> shift & 255);
  return text;
}

std::uint16_t ipv4_checksum(const std::byte* header) {
  std::uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += load16(header + i);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum & 0xffff);
}

bool whole(std::span<const std::byte> frame) {
  const std::byte* f = frame.data();
  if (frame.size() < kIpAt) return false;
  if (load16(f + 12) != kEtherIpv4) return true;
  if (frame.size() < kUdpAt || frame.size() < kIpAt + load16(f + kIpAt + 2)) return false;
  return load8(f + kIpAt) != kNoOptions || load8(f + kIpAt + 9) != kProtocolUdp ||
         frame.size() >= kUdpHeaderBytes;
}

std::span<const std::byte> without_padding(std::span<const std::byte> frame) {
  if (load16(frame.data() + 12) != kEtherIpv4) return frame;
  const std::size_t packet = kIpAt + load16(frame.data() + kIpAt + 2);
  return frame.first(std::min(frame.size(), std::max(packet, kShortestFrame)));
}

bool holds_udp(std::span<const std::byte> frame) {
  const std::byte* f = frame.data();
  return frame.size() >= kUdpHeaderBytes && load16(f + 12) == kEtherIpv4 &&
         load8(f + kIpAt) == kNoOptions && load8(f + kIpAt + 9) == kProtocolUdp;
}

bool udp_has(std::span<const std::byte> frame, std::size_t bytes) {
  const std::byte* f = frame.data();
  return frame.size() >= bytes && load16(f + kIpAt + 2) == bytes - kIpAt &&
         load16(f + kUdpAt + 4) == bytes - kUdpAt && (load16(f + kIpAt + 6) & kFragmentMask) == 0;
}

Address udp_source(const std::byte* f) { return address(f + 6, f + kIpAt + 12, f + kUdpAt); }
Address udp_target(const std::byte* f) { return address(f, f + kIpAt + 16, f + kUdpAt + 2); }

void write_udp_headers(const Address& source, const Address& target, std::size_t bytes,
                       std::byte* f) {
  std::memset(f, 0, kUdpHeaderBytes);
  std::memcpy(f, target.mac.data(), target.mac.size());
  std::memcpy(f + 6, source.mac.data(), source.mac.size());
  store16(f + 12, kEtherIpv4);
  f[kIpAt] = std::byte{kNoOptions};
  store16(f + kIpAt + 2, static_cast<std::uint16_t>(bytes - kIpAt));
  f[kIpAt + 8] = std::byte{kTimeToLive};
  f[kIpAt + 9] = std::byte{kProtocolUdp};
  store32(f + kIpAt + 12, source.ip);
  store32(f + kIpAt + 16, target.ip);
  store16(f + kIpChecksumAt, ipv4_checksum(f + kIpAt));
  store16(f + kUdpAt, source.udp);
  store16(f + kUdpAt + 2, target.udp);
  store16(f + kUdpAt + 4, static_cast<std::uint16_t>(bytes - kUdpAt));
}

}  // namespace ghostrank::switchml
