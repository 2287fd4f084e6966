#include "switch/wire/sparse.h"

#include <algorithm>
#include <array>

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kRoundAt = kUdpHeaderBytes, kIndexAt = kRoundAt + 4, kNextAt = kIndexAt + 2,
                      kTypeAt = kNextAt + 4;
constexpr std::array kSizes{0, 32, 64, 256};

// `known_by`: offset of the UDP port that identifies the packets.
Kind parse_sparse_by(std::size_t known_by, std::span<const std::byte> frame, Packet& packet) {
  const std::byte* f = frame.data();
  if (!holds_udp(frame) || load16(f + known_by) != kSparsePort) return Kind::other;
  const auto size = std::ranges::find_if(
      kSizes, [&](int elements) { return udp_has(frame, sparse_frame_bytes(elements)); });
  if (size == kSizes.end() || load8(f + kTypeAt) != kSparseInt32) return Kind::malformed;
  packet.target = udp_target(f);
  packet.source = udp_source(f);
  packet.id = load32(f + kRoundAt);
  const std::uint16_t index = load16(f + kIndexAt);
  packet.set = static_cast<std::uint8_t>(index >> 15);
  packet.slot = index & 0x7fff;
  packet.next = load32(f + kNextAt);
  packet.elements = *size;
  packet.values = *size == 0 ? nullptr : f + kSparseHeaderBytes;
  return Kind::switchml;
}

}  // namespace

Kind parse_sparse(std::span<const std::byte> frame, Packet& packet) {
  return parse_sparse_by(kUdpAt + 2, frame, packet);
}

Kind parse_sparse_result(std::span<const std::byte> frame, Packet& packet) {
  return parse_sparse_by(kUdpAt, frame, packet);
}

void write_sparse_header(const Packet& packet, std::byte* f) {
  write_udp_headers(packet.source, packet.target, sparse_frame_bytes(packet.elements), f);
  store32(f + kRoundAt, packet.id);
  store16(f + kIndexAt, static_cast<std::uint16_t>(packet.set << 15 | packet.slot));
  store32(f + kNextAt, packet.next);
  f[kTypeAt] = std::byte{kSparseInt32};
}

}  // namespace ghostrank::switchml
