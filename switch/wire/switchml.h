// SwitchML's packets over UDP, as hosts, switches and tests write and read them. This file, the P4
// headers (p4/headers.p4) and the Wireshark dissector (switchml.lua) describe one format; a test
// compares them.
//
//   Ethernet 14 | IPv4 20 | UDP 8 | SwitchML 8 | exponents 2 | elements: int32, 32, 64 or 256
//
//   SwitchML   0     type:4 | unused:1 | size:3 (0, 1, 3: 32, 64, 256)
//              1     job number, low 8 bits
//              2-5   packet id: echoed; a guarded switch tells old packets by it (pool.h)
//              6-7   pool index: set in bit 15, slot in bits 14-0
//   exponents  8     e0, signed;  9: e1, signed
//
// The published type is 1, in both directions. Two types are ours, for functions in which one
// worker gives or takes the elements alone. That worker's number (kNobody: none) follows the
// exponents in two more bytes. A packet whose receiver needs no elements has none, and size 7: it
// is a credit.
//
// All fields are big-endian, packet ids included. Source: the packet formats of
// p4lang/p4app-switchML (UDP port 0xBEE0; its low four bits are free for the worker's thread).
//
// Units: bytes. Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "switch/wire/udp.h"

namespace ghostrank::switchml {

inline constexpr std::uint16_t kUdpPort = 0xbee0;
inline constexpr std::uint16_t kUdpPortMask = 0xfff0;
inline constexpr std::uint16_t kWorkerPort = 4000;
inline constexpr int kMaxWorkers = 32;  // per switch
inline constexpr int kMaxSlots = 1 << 14;
inline constexpr std::size_t kHeaderBytes = kUdpHeaderBytes + 8 + 2;  // of type 1
inline constexpr std::uint16_t kNobody = 0xffff;

enum class PacketType : std::uint8_t {
  everyone = 1,  // all workers give elements, all take: all-reduce
  to_one = 2,    // all give, one takes: reduce-scatter, reduce
  from_one = 3,  // one gives, all others take: all-gather, broadcast
};

struct Packet {
  Address source, target;
  std::uint8_t job = 0;
  std::uint32_t id = 0;
  std::uint16_t slot = 0;  // below 2^15; a job's slots are below kMaxSlots
  std::uint8_t set = 0;    // 0 or 1
  std::int8_t e0 = 0, e1 = 0;
  int elements = 0;                   // 32, 64 or 256; 0: a credit
  const std::byte* values = nullptr;  // elements x 4 bytes, big-endian, inside the frame
  PacketType type = PacketType::everyone;
  std::uint16_t worker = kNobody;  // the only one that gives or takes
  std::uint32_t next = 0;          // block, of OmniReduce's packets alone (sparse.h)
};

// Whether worker `w` takes the elements of a round's result; else it takes a credit.
inline bool takes(const Packet& result, int w) {
  return result.type == PacketType::everyone ||
         (result.worker == w) == (result.type == PacketType::to_one);
}

inline constexpr bool valid_elements(int n) { return n == 32 || n == 64 || n == 256; }
inline constexpr std::size_t header_bytes(PacketType type) {
  return kHeaderBytes + (type == PacketType::everyone ? 0 : 2);
}
inline constexpr std::size_t frame_bytes(int elements, PacketType type = PacketType::everyone) {
  return header_bytes(type) + 4 * static_cast<std::size_t>(elements);
}

enum class Kind : std::uint8_t {
  switchml,   // well-formed
  malformed,  // to SwitchML's UDP port, but not of its form
  other,      // anything else
};

// Reads a frame without FCS; trailing padding is allowed. If the result is Kind::switchml, `packet`
// is set and points into the frame. The IPv4 checksum is not checked, as in a switch's parser.
Kind parse(std::span<const std::byte> frame, Packet& packet);

// As parse(), for a packet from a switch to a worker: recognised by its UDP source port.
Kind parse_result(std::span<const std::byte> frame, Packet& packet);

// Writes all headers, that is the first header_bytes() of `frame`, with the IPv4 checksum and
// without a UDP checksum. Writes no elements.
void write_header(const Packet& packet, std::byte* frame);

}  // namespace ghostrank::switchml
