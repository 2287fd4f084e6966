#include "switch/switchml.h"

#include <algorithm>
#include <cstring>

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kIp = 14, kUdp = kIp + 20, kSwitchml = kUdp + 8, kExponents = kSwitchml + 8;
constexpr std::size_t kSourcePort = 0, kTargetPort = 2;  // of the UDP header
constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::array<int, 4> kElementsOfSize{32, 64, 0, 256};

std::uint8_t byte(const std::byte* p) { return std::to_integer<std::uint8_t>(*p); }

std::uint8_t size_code(int elements) { return elements == 32 ? 0 : elements == 64 ? 1 : 3; }

Mac load_mac(const std::byte* p) {
  Mac mac;
  std::memcpy(mac.data(), p, mac.size());
  return mac;
}

// `known_by`: of the two ports in the UDP header, the one that tells.
Kind parse_by(std::size_t known_by, std::span<const std::byte> frame, Packet& packet) {
  const std::byte* f = frame.data();
  if (frame.size() < kUdp + 8 || load16(f + 12) != kEtherIpv4 || byte(f + kIp) != 0x45 ||
      byte(f + kIp + 9) != kProtocolUdp || (load16(f + kUdp + known_by) & kUdpPortMask) != kUdpPort)
    return Kind::other;
  const std::uint16_t ip_bytes = load16(f + kIp + 2), udp_bytes = load16(f + kUdp + 4);
  const std::uint8_t first = frame.size() > kSwitchml ? byte(f + kSwitchml) : 0;
  const int elements = (first & 7) < 4 ? kElementsOfSize[first & 7] : 0;
  const std::size_t bytes = frame_bytes(elements);
  const bool fragment = (load16(f + kIp + 6) & 0x3fff) != 0;
  if (first >> 3 != 2 || elements == 0 || frame.size() < bytes || ip_bytes != bytes - kIp ||
      udp_bytes != bytes - kUdp || fragment)
    return Kind::malformed;
  packet.target = {load_mac(f), load32(f + kIp + 16), load16(f + kUdp + 2)};
  packet.source = {load_mac(f + 6), load32(f + kIp + 12), load16(f + kUdp)};
  packet.job = byte(f + kSwitchml + 1);
  packet.id = load32(f + kSwitchml + 2);
  const std::uint16_t index = load16(f + kSwitchml + 6);
  packet.set = static_cast<std::uint8_t>(index >> 15);
  packet.slot = index & 0x7fff;
  packet.e0 = static_cast<std::int8_t>(byte(f + kExponents));
  packet.e1 = static_cast<std::int8_t>(byte(f + kExponents + 1));
  packet.elements = elements;
  packet.values = f + kHeaderBytes;
  return Kind::switchml;
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
  if (frame.size() < kIp) return false;
  if (load16(frame.data() + 12) != kEtherIpv4) return true;
  return frame.size() >= kUdp && frame.size() >= kIp + load16(frame.data() + kIp + 2);
}

Kind parse(std::span<const std::byte> frame, Packet& packet) {
  return parse_by(kTargetPort, frame, packet);
}

Kind parse_result(std::span<const std::byte> frame, Packet& packet) {
  return parse_by(kSourcePort, frame, packet);
}

void write_header(const Packet& packet, std::byte* f) {
  const std::size_t bytes = frame_bytes(packet.elements);
  std::memset(f, 0, kHeaderBytes);
  std::memcpy(f, packet.target.mac.data(), 6);
  std::memcpy(f + 6, packet.source.mac.data(), 6);
  store16(f + 12, kEtherIpv4);
  f[kIp] = std::byte{0x45};
  store16(f + kIp + 2, static_cast<std::uint16_t>(bytes - kIp));
  f[kIp + 8] = std::byte{kTimeToLive};
  f[kIp + 9] = std::byte{kProtocolUdp};
  store32(f + kIp + 12, packet.source.ip);
  store32(f + kIp + 16, packet.target.ip);
  store16(f + kIp + 10, ipv4_checksum(f + kIp));
  store16(f + kUdp, packet.source.udp);
  store16(f + kUdp + 2, packet.target.udp);
  store16(f + kUdp + 4, static_cast<std::uint16_t>(bytes - kUdp));
  f[kSwitchml] = static_cast<std::byte>(1 << 4 | size_code(packet.elements));
  f[kSwitchml + 1] = static_cast<std::byte>(packet.job);
  store32(f + kSwitchml + 2, packet.id);
  store16(f + kSwitchml + 6, static_cast<std::uint16_t>(packet.set << 15 | packet.slot));
  f[kExponents] = static_cast<std::byte>(packet.e0);
  f[kExponents + 1] = static_cast<std::byte>(packet.e1);
}

}  // namespace ghostrank::switchml
