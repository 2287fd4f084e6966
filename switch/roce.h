// SwitchML's packets over RoCEv2, the second format: what a NIC sends for RDMA writes over an
// unreliable connection, so that hosts need not touch packets. Derived from the packet formats of
// p4lang/p4app-switchML; no NIC has sent any of these to this code.
//
//   Ethernet 14 | IPv4 20 | UDP 8, to port 4791 | BTH 12 | RETH 16, in the first packet of a
//   message | immediate 4, in the last, where there is one | elements: 256 of int32 | ICRC 4
//
//   BTH    0     opcode: 0x26 first, 0x27 middle, 0x28 last, 0x29 last with immediate, 0x2a only,
//                0x2b only with immediate
//          2-3   partition key 0xffff
//          5-7   destination queue pair; of the switch: bits 20-16 the worker, 8-0 one of its 512
//          9-11  packet sequence number
//   RETH   0-7   address of the result at the worker, alike at all workers, echoed
//          8-11  remote key; of the switch: bit 0 the set, bits 15-1 the slot, of the message's
//          first
//                packet; of a worker: its memory's
//          12-15 length of the message, echoed
//   immediate    31-16 low bits of the message's number, 15-8 e0, 7-0 e1; both signed
//
// Only a message's first packet says where it belongs: the others follow it, a slot further each.
// The ICRC is neither checked nor made (0): the NIC's check has to be off.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "switch/switchml.h"

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
// Begins a message, and has a RETH; ends one; has an immediate.
bool begins(RoceOpcode opcode);
bool ends(RoceOpcode opcode);
bool has_immediate(RoceOpcode opcode);

// The switch's queue pairs: which worker writes to one, and which of its own it is.
inline constexpr std::uint32_t switch_queue_pair(int worker, int queue) {
  return static_cast<std::uint32_t>(worker) << 16 | static_cast<std::uint32_t>(queue);
}
inline constexpr int worker_of(std::uint32_t queue_pair) {
  return static_cast<int>(queue_pair >> 16 & (kMaxWorkers - 1));
}
inline constexpr int queue_of(std::uint32_t queue_pair) {
  return static_cast<int>(queue_pair & (kQueuePairsOfWorker - 1));
}

// Where a packet's elements belong, and the remote key that says so.
struct RocePlace {
  std::uint16_t slot = 0;  // below 2^15
  std::uint8_t set = 0;    // 0 or 1
};
inline constexpr std::uint32_t remote_key_of(RocePlace place) {
  return static_cast<std::uint32_t>(place.slot << 1 | place.set);
}
inline constexpr RocePlace place_of(std::uint32_t remote_key) {
  return {static_cast<std::uint16_t>(remote_key >> 1 & 0x7fff),
          static_cast<std::uint8_t>(remote_key & 1)};
}

struct RocePacket {
  Address source, target;  // target.udp is kRocePort
  RoceOpcode opcode = RoceOpcode::only;
  std::uint32_t queue_pair = 0;  // 24 bits
  std::uint32_t sequence = 0;    // 24 bits
  // Where begins(opcode):
  std::uint64_t address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t length = 0;
  // Where has_immediate(opcode):
  std::uint16_t message = 0;
  std::int8_t e0 = 0, e1 = 0;
  const std::byte* values = nullptr;  // inside the frame
};

std::size_t roce_header_bytes(RoceOpcode opcode);
std::size_t roce_frame_bytes(RoceOpcode opcode);

// Reads a frame without FCS; `packet` is set where the result is Kind::switchml.
Kind parse_roce(std::span<const std::byte> frame, RocePacket& packet);

// Writes the headers, roce_header_bytes(packet.opcode), and nothing behind them: elements and the
// ICRC are the caller's.
void write_roce_header(const RocePacket& packet, std::byte* frame);

// What a switch knows of one of its queue pairs.
struct RoceQueue {
  std::uint32_t next_sequence = 0;
  RocePlace next;
  bool broken = true;  // no message has begun, or one has a gap
};

// Where this packet's elements belong; none: it is dropped, because a packet before it is missing.
// After a gap everything is dropped until a message begins: it is sent again as a whole.
std::optional<RocePlace> follow(RoceQueue& queue, const RocePacket& packet);

inline constexpr std::uint32_t next_sequence(std::uint32_t sequence) {
  return (sequence + 1) & 0xffffff;
}

}  // namespace ghostrank::switchml
