// The packets of OmniReduce to and from a switch that sums blocks by Algorithm 2
// (collectives/schemes/omnireduce.h). Over UDP, in both directions:
//
//   Ethernet 14 | IPv4 20 | UDP 8 | OmniReduce 11 | elements: int32, 32, 64 or 256, or none
//
//   OmniReduce 0-3   number of the round in its slot
//              4-5   set in bit 15, slot in bits 14-0
//              6-9   up: the worker's next nonzero block; down: the least of all workers'
//              10    type of the elements: 1, int32
//
// All fields are big-endian, elements too. A worker without the round's block sends no elements; a
// result has some. Packet::id is the number of the round.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "switch/wire/switchml.h"

namespace ghostrank::switchml {

inline constexpr std::uint16_t kSparsePort = 0xbe80;
inline constexpr std::uint8_t kSparseInt32 = 1;
inline constexpr std::size_t kSparseHeaderBytes = kUdpHeaderBytes + 11;

inline constexpr std::size_t sparse_frame_bytes(int elements) {
  return kSparseHeaderBytes + 4 * static_cast<std::size_t>(elements);
}

// Recognises a whole frame by its UDP destination port and reads it.
Kind parse_sparse(std::span<const std::byte> frame, Packet& packet);

// As parse_sparse(), for a packet from a switch to a worker: recognised by its UDP source port.
Kind parse_sparse_result(std::span<const std::byte> frame, Packet& packet);

// Writes all headers, that is the first kSparseHeaderBytes of `frame`, with the IPv4 checksum and
// without a UDP checksum. Writes no elements.
void write_sparse_header(const Packet& packet, std::byte* frame);

}  // namespace ghostrank::switchml
