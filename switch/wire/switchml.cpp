#include "switch/wire/switchml.h"

#include <array>

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kSwitchml = kUdpHeaderBytes, kExponents = kSwitchml + 8,
                      kWorker = kExponents + 2;
constexpr std::array<int, 4> kElementsOfSize{32, 64, 0, 256};

constexpr unsigned kCreditSize = 7;

unsigned size_code(int elements) {
  return elements == 0 ? kCreditSize : elements == 32 ? 0 : elements == 64 ? 1 : 3;
}

// Reads the type and the number of elements; false: there is no such packet.
bool read_first(std::uint8_t first, Packet& packet) {
  const unsigned type = first >> 4, size = first & 7;
  if (type < 1 || type > 3 || (first & 8) != 0) return false;
  packet.type = static_cast<PacketType>(type);
  packet.elements = size < kElementsOfSize.size() ? kElementsOfSize[size] : 0;
  const bool credit = size == kCreditSize && packet.type != PacketType::everyone;
  return packet.elements != 0 || credit;
}

// `known_by`: offset of the UDP port that identifies SwitchML, the source's or the destination's.
Kind parse_by(std::size_t known_by, std::span<const std::byte> frame, Packet& packet) {
  const std::byte* f = frame.data();
  if (!holds_udp(frame) || (load16(f + known_by) & kUdpPortMask) != kUdpPort) return Kind::other;
  const std::uint8_t first = frame.size() > kSwitchml ? load8(f + kSwitchml) : 0;
  if (!read_first(first, packet) || !udp_has(frame, frame_bytes(packet.elements, packet.type)))
    return Kind::malformed;
  packet.target = udp_target(f);
  packet.source = udp_source(f);
  packet.job = load8(f + kSwitchml + 1);
  packet.id = load32(f + kSwitchml + 2);
  const std::uint16_t index = load16(f + kSwitchml + 6);
  packet.set = static_cast<std::uint8_t>(index >> 15);
  packet.slot = index & 0x7fff;
  packet.e0 = static_cast<std::int8_t>(load8(f + kExponents));
  packet.e1 = static_cast<std::int8_t>(load8(f + kExponents + 1));
  packet.worker = packet.type == PacketType::everyone ? kNobody : load16(f + kWorker);
  packet.values = packet.elements == 0 ? nullptr : f + header_bytes(packet.type);
  return Kind::switchml;
}

}  // namespace

Kind parse(std::span<const std::byte> frame, Packet& packet) {
  return parse_by(kUdpAt + 2, frame, packet);
}

Kind parse_result(std::span<const std::byte> frame, Packet& packet) {
  return parse_by(kUdpAt, frame, packet);
}

void write_header(const Packet& packet, std::byte* f) {
  write_udp_headers(packet.source, packet.target, frame_bytes(packet.elements, packet.type), f);
  f[kSwitchml] =
      static_cast<std::byte>(static_cast<unsigned>(packet.type) << 4 | size_code(packet.elements));
  f[kSwitchml + 1] = static_cast<std::byte>(packet.job);
  store32(f + kSwitchml + 2, packet.id);
  store16(f + kSwitchml + 6, static_cast<std::uint16_t>(packet.set << 15 | packet.slot));
  f[kExponents] = static_cast<std::byte>(packet.e0);
  f[kExponents + 1] = static_cast<std::byte>(packet.e1);
  if (packet.type != PacketType::everyone) store16(f + kWorker, packet.worker);
}

}  // namespace ghostrank::switchml
