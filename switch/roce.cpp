#include "switch/roce.h"

#include <cstring>

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kIp = 14, kUdp = kIp + 20, kBth = kUdp + 8, kAfterBth = kBth + 12;
constexpr std::size_t kReth = 16, kImmediate = 4, kIcrc = 4;
constexpr std::size_t kPayload = 4 * kRoceElements;
constexpr std::uint16_t kEtherIpv4 = 0x0800, kPartition = 0xffff;
constexpr std::uint8_t kProtocolUdp = 17, kTimeToLive = 64;
constexpr std::uint32_t kSequenceMask = 0xffffff, kSlotMask = 0x7fff;

std::uint8_t byte(const std::byte* p) { return std::to_integer<std::uint8_t>(*p); }

std::uint64_t load64(const std::byte* p) {
  return static_cast<std::uint64_t>(load32(p)) << 32 | load32(p + 4);
}

Mac load_mac(const std::byte* p) {
  Mac mac;
  std::memcpy(mac.data(), p, mac.size());
  return mac;
}

void read_reth(const std::byte* at, RocePacket& packet) {
  const std::uint32_t key = load32(at + 8);
  packet.address = load64(at);
  packet.set = static_cast<std::uint8_t>(key & 1);
  packet.slot = static_cast<std::uint16_t>(key >> 1 & kSlotMask);
  packet.length = load32(at + 12);
}

void read_immediate(const std::byte* at, RocePacket& packet) {
  packet.message = load16(at);
  packet.e0 = static_cast<std::int8_t>(byte(at + 2));
  packet.e1 = static_cast<std::int8_t>(byte(at + 3));
}

void write_bth(const RocePacket& packet, std::byte* at) {
  at[0] = static_cast<std::byte>(packet.opcode);
  store16(at + 2, kPartition);
  store32(at + 4, static_cast<std::uint32_t>(packet.worker) << 16 |
                      static_cast<std::uint32_t>(packet.queue_pair));
  store32(at + 8, packet.sequence & kSequenceMask);
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
  return roce_header_bytes(opcode) + kPayload + kIcrc;
}

Kind parse_roce(std::span<const std::byte> frame, RocePacket& packet) {
  const std::byte* f = frame.data();
  if (frame.size() < kBth || load16(f + 12) != kEtherIpv4 || byte(f + kIp) != 0x45 ||
      byte(f + kIp + 9) != kProtocolUdp || load16(f + kUdp + 2) != kRocePort)
    return Kind::other;
  if (frame.size() < kAfterBth) return Kind::malformed;
  const std::uint8_t opcode = byte(f + kBth);
  if (opcode < static_cast<std::uint8_t>(RoceOpcode::first) ||
      opcode > static_cast<std::uint8_t>(RoceOpcode::only_immediate))
    return Kind::malformed;
  packet.opcode = static_cast<RoceOpcode>(opcode);
  const std::size_t bytes = roce_frame_bytes(packet.opcode);
  const bool fragment = (load16(f + kIp + 6) & 0x3fff) != 0;
  if (frame.size() < bytes || load16(f + kIp + 2) != bytes - kIp ||
      load16(f + kUdp + 4) != bytes - kUdp || fragment)
    return Kind::malformed;
  packet.target = {load_mac(f), load32(f + kIp + 16), kRocePort};
  packet.source = {load_mac(f + 6), load32(f + kIp + 12), load16(f + kUdp)};
  const std::uint32_t queue = load32(f + kBth + 4);
  packet.worker = static_cast<int>(queue >> 16 & (kMaxWorkers - 1));
  packet.queue_pair = static_cast<int>(queue & (kQueuePairsOfWorker - 1));
  packet.sequence = load32(f + kBth + 8) & kSequenceMask;
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
  const std::size_t bytes = roce_frame_bytes(packet.opcode);
  std::memset(f, 0, roce_header_bytes(packet.opcode));
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
  store16(f + kUdp + 2, kRocePort);
  store16(f + kUdp + 4, static_cast<std::uint16_t>(bytes - kUdp));
  write_bth(packet, f + kBth);
  std::byte* at = f + kAfterBth;
  if (begins(packet.opcode)) {
    store32(at, static_cast<std::uint32_t>(packet.address >> 32));
    store32(at + 4, static_cast<std::uint32_t>(packet.address));
    store32(at + 8, (packet.slot & kSlotMask) << 1 | packet.set);
    store32(at + 12, packet.length);
    at += kReth;
  }
  if (!has_immediate(packet.opcode)) return;
  store16(at, packet.message);
  at[2] = static_cast<std::byte>(packet.e0);
  at[3] = static_cast<std::byte>(packet.e1);
}

std::optional<RocePlace> follow(RoceQueue& queue, const RocePacket& packet) {
  if (begins(packet.opcode)) {
    queue = {packet.sequence, packet.slot, packet.set, false};
  } else if (queue.broken || packet.sequence != queue.next_sequence) {
    queue.broken = true;
    return std::nullopt;
  }
  const RocePlace place{queue.slot, queue.set};
  queue.next_sequence = (packet.sequence + 1) & kSequenceMask;
  queue.slot = static_cast<std::uint16_t>((queue.slot + 1) & kSlotMask);
  if (ends(packet.opcode)) queue.broken = true;  // nothing follows it
  return place;
}

}  // namespace ghostrank::switchml
