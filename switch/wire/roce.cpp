#include "switch/wire/roce.h"

#include <cstring>

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kBth = kUdpHeaderBytes, kAfterBth = kBth + 12;
constexpr std::size_t kReth = 16, kImmediate = 4;
constexpr std::size_t kPayload = 4 * kRoceElements;
constexpr std::uint16_t kPartition = 0xffff;
constexpr std::uint32_t kMask24 = 0xffffff;  // of queue pairs and sequence numbers

void read_reth(const std::byte* at, RocePacket& packet) {
  packet.address = load64(at);
  packet.remote_key = load32(at + 8);
  packet.length = load32(at + 12);
}

void read_immediate(const std::byte* at, RocePacket& packet) {
  packet.message = load16(at);
  packet.e0 = load8(at + 2);
  packet.e1 = load8(at + 3);
}

void write_bth(const RocePacket& packet, std::byte* at) {
  at[0] = static_cast<std::byte>(packet.opcode);
  store16(at + 2, kPartition);
  store32(at + 4, packet.queue_pair & kMask24);
  store32(at + 8, packet.sequence & kMask24);
}

}  // namespace

bool begins(RoceOpcode opcode) {
  return opcode == RoceOpcode::first || opcode == RoceOpcode::only ||
         opcode == RoceOpcode::only_immediate;
}

bool ends(RoceOpcode opcode) { return opcode != RoceOpcode::first && opcode != RoceOpcode::middle; }

bool has_immediate(RoceOpcode opcode) {
  return opcode == RoceOpcode::last_immediate || opcode == RoceOpcode::only_immediate;
}

std::size_t roce_header_bytes(RoceOpcode opcode) {
  return kAfterBth + (begins(opcode) ? kReth : 0) + (has_immediate(opcode) ? kImmediate : 0);
}

std::size_t roce_frame_bytes(RoceOpcode opcode) {
  return roce_header_bytes(opcode) + kPayload + kIcrcBytes;
}

Kind parse_roce(std::span<const std::byte> frame, RocePacket& packet) {
  const std::byte* f = frame.data();
  if (!holds_udp(frame) || load16(f + kUdpAt + 2) != kRocePort) return Kind::other;
  if (frame.size() < kAfterBth) return Kind::malformed;
  const std::uint8_t opcode = load8(f + kBth);
  if (opcode < static_cast<std::uint8_t>(RoceOpcode::first) ||
      opcode > static_cast<std::uint8_t>(RoceOpcode::only_immediate))
    return Kind::malformed;
  packet.opcode = static_cast<RoceOpcode>(opcode);
  if (!udp_has(frame, roce_frame_bytes(packet.opcode))) return Kind::malformed;
  packet.target = udp_target(f);
  packet.source = udp_source(f);
  packet.queue_pair = load32(f + kBth + 4) & kMask24;
  packet.sequence = load32(f + kBth + 8) & kMask24;
  std::size_t at = kAfterBth;
  if (begins(packet.opcode)) {
    read_reth(f + at, packet);
    at += kReth;
  }
  if (has_immediate(packet.opcode)) read_immediate(f + at, packet);
  packet.values = f + roce_header_bytes(packet.opcode);
  return Kind::switchml;
}

void write_roce_header(const RocePacket& packet, std::byte* f) {
  std::memset(f + kBth, 0, roce_header_bytes(packet.opcode) - kBth);
  write_udp_headers(packet.source, {packet.target.mac, packet.target.ip, kRocePort},
                    roce_frame_bytes(packet.opcode), f);
  write_bth(packet, f + kBth);
  std::byte* at = f + kAfterBth;
  if (begins(packet.opcode)) {
    store64(at, packet.address);
    store32(at + 8, packet.remote_key);
    store32(at + 12, packet.length);
    at += kReth;
  }
  if (!has_immediate(packet.opcode)) return;
  store16(at, packet.message);
  at[2] = static_cast<std::byte>(packet.e0);
  at[3] = static_cast<std::byte>(packet.e1);
}

std::optional<RoceSlot> follow(RoceQueue& queue, const RocePacket& packet) {
  if (begins(packet.opcode)) {
    queue = {packet.sequence, slot_of(packet.remote_key), false};
  } else if (queue.broken || packet.sequence != queue.next_sequence) {
    queue.broken = true;
    return std::nullopt;
  }
  const RoceSlot at = queue.next;
  queue.next_sequence = next_sequence(packet.sequence);
  queue.next.slot = static_cast<std::uint16_t>((at.slot + 1) & 0x7fff);
  if (ends(packet.opcode)) queue.broken = true;  // no packet of this message follows
  return at;
}

}  // namespace ghostrank::switchml
