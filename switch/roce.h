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
//          5-7   destination queue pair: bits 20-16 the worker, 8-0 one of its 512 queue pairs
//          9-11  packet sequence number
//   RETH   0-7   address of the result at the worker, alike at all workers, echoed
//          8-11  remote key: bit 0 the set, bits 15-1 the slot, of the message's first packet
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

struct RocePacket {
  Address source, target;  // target.udp is kRocePort
  RoceOpcode opcode = RoceOpcode::only;
  int worker = 0;              // below kMaxWorkers
  int queue_pair = 0;          // below kQueuePairsOfWorker
  std::uint32_t sequence = 0;  // 24 bits
  // Where begins(opcode):
  std::uint64_t address = 0;
  std::uint16_t slot = 0;  // below 2^15
  std::uint8_t set = 0;
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

// Writes the headers, roce_header_bytes(packet.opcode), and nothing behind them.
void write_roce_header(const RocePacket& packet, std::byte* frame);

// What a switch knows of one queue pair of a worker.
struct RoceQueue {
  std::uint32_t next_sequence = 0;
  std::uint16_t slot = 0;
  std::uint8_t set = 0;
  bool broken = true;  // no message has begun, or one has a gap
};

struct RocePlace {
  std::uint16_t slot = 0;
  std::uint8_t set = 0;
};

// Where this packet's elements belong; none: it is dropped, because a packet before it is missing.
// After a gap everything is dropped until a message begins: it is sent again as a whole.
std::optional<RocePlace> follow(RoceQueue& queue, const RocePacket& packet);

}  // namespace ghostrank::switchml
