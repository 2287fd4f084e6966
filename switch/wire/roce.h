// SwitchML's packets over RoCEv2, the second format: what a NIC sends for RDMA writes over an
// unreliable connection, so that hosts need not touch packets. Derived from the packet formats of
// p4lang/p4app-switchML; no NIC has sent any of these to this code.
//
// clang-format off
//   Ethernet 14 | IPv4 20 | UDP 8 | BTH 12 | RETH 16 | immediate 4 | elements: 256 of int32 | ICRC 4
//
//   UDP          to port 4791
//   RETH         only in the first packet of a message
//   immediate    only in the last packet, if the message has one
//
//   BTH    0     opcode: 0x26 first, 0x27 middle, 0x28 last, 0x29 last with immediate, 0x2a only,
//                0x2b only with immediate
//          2-3   partition key 0xffff
//          5-7   destination queue pair; at the switch: bits 20-16 the worker, 8-0 one of its 512
//          9-11  packet sequence number
//   RETH   0-7   address of the result at the worker; all workers use the same; echoed
//          8-11  remote key; at the switch: bit 0 the set, bits 15-1 the slot, of the first packet;
//                at a worker: the key of its memory
//          12-15 length of the message, echoed
//   immediate    31-16 low bits of the message's number, 15-8 e0, 7-0 e1; both signed
// clang-format on
//
// Only the first packet of a message says where it belongs: each further packet belongs to the next
// slot. The ICRC is neither checked nor computed (0), so the NIC's check must be off.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "switch/wire/switchml.h"

namespace ghostrank::switchml {

inline constexpr std::uint16_t kRocePort = 4791;
inline constexpr int kRoceElements = 256;
inline constexpr int kQueuePairsOfWorker = 512;
inline constexpr std::size_t kIcrcBytes = 4;

enum class RoceOpcode : std::uint8_t {
  first = 0x26,
  middle = 0x27,
  last = 0x28,
  last_immediate = 0x29,
  only = 0x2a,
  only_immediate = 0x2b,
};
// Whether a packet begins a message (it then has a RETH), ends one, has an immediate.
bool begins(RoceOpcode opcode);
bool ends(RoceOpcode opcode);
bool has_immediate(RoceOpcode opcode);

// The number of a switch's queue pair, made of a worker and the index among that worker's queue
// pairs.
inline constexpr std::uint32_t switch_queue_pair(int worker, int queue) {
  return static_cast<std::uint32_t>(worker) << 16 | static_cast<std::uint32_t>(queue);
}
inline constexpr int worker_of(std::uint32_t queue_pair) {
  return static_cast<int>(queue_pair >> 16 & (kMaxWorkers - 1));
}
inline constexpr int queue_of(std::uint32_t queue_pair) {
  return static_cast<int>(queue_pair & (kQueuePairsOfWorker - 1));
}

// The slot and set of a packet's elements, and the remote key that encodes them.
struct RoceSlot {
  std::uint16_t slot = 0;  // below 2^15
  std::uint8_t set = 0;    // 0 or 1
};
inline constexpr std::uint32_t remote_key_of(RoceSlot at) {
  return static_cast<std::uint32_t>(at.slot << 1 | at.set);
}
inline constexpr RoceSlot slot_of(std::uint32_t remote_key) {
  return {static_cast<std::uint16_t>(remote_key >> 1 & 0x7fff),
          static_cast<std::uint8_t>(remote_key & 1)};
}

struct RocePacket {
  Address source, target;  // target.udp is kRocePort
  RoceOpcode opcode = RoceOpcode::only;
  std::uint32_t queue_pair = 0;  // 24 bits
  std::uint32_t sequence = 0;    // 24 bits
  // If begins(opcode):
  std::uint64_t address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t length = 0;
  // If has_immediate(opcode):
  std::uint16_t message = 0;
  std::int8_t e0 = 0, e1 = 0;
  const std::byte* values = nullptr;  // inside the frame
};

std::size_t roce_header_bytes(RoceOpcode opcode);
std::size_t roce_frame_bytes(RoceOpcode opcode);

// Reads a frame without FCS; sets `packet` if the result is Kind::switchml.
Kind parse_roce(std::span<const std::byte> frame, RocePacket& packet);

// Writes the headers only, roce_header_bytes(packet.opcode) bytes; the caller writes the elements
// and the ICRC.
void write_roce_header(const RocePacket& packet, std::byte* frame);

// The receiving state of a switch's queue pair.
struct RoceQueue {
  std::uint32_t next_sequence = 0;
  RoceSlot next;
  bool broken = true;  // no message has begun, or the current one has a gap
};

// The slot and set of this packet's elements. Empty: drop it, because an earlier packet is missing.
// After a gap all packets are dropped until a message begins, since the worker sends the message
// again as a whole.
std::optional<RoceSlot> follow(RoceQueue& queue, const RocePacket& packet);

inline constexpr std::uint32_t next_sequence(std::uint32_t sequence) {
  return (sequence + 1) & 0xffffff;
}

}  // namespace ghostrank::switchml
