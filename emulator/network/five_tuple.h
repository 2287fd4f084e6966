// What a switch hashes to choose among equal paths: addresses, protocol and ports of a packet. A
// connection here is a queue pair of RoCEv2 (UDP to port 4791), whose source port the sender
// derives from the numbers of both queue pairs, as Linux does (rdma_calc_flow_label and
// rdma_flow_label_to_udp_sport in include/rdma/ib_verbs.h). So connections between the same two
// NICs differ in 14 bits of their source ports alone.
//
// Threading: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ghostrank {

struct FiveTuple {
  std::uint32_t source = 0, target = 0;  // IPv4 addresses
  std::uint8_t protocol = 17;
  std::uint16_t source_port = 0, target_port = 4791;
};

// `local`, `remote`: numbers of the queue pairs, 24 bits each.
constexpr std::uint16_t roce_source_port(std::uint32_t local, std::uint32_t remote) {
  std::uint64_t v = std::uint64_t{local} * remote;
  v ^= v >> 20;
  v ^= v >> 40;
  const auto label = static_cast<std::uint32_t>(v & 0xfffff);
  return static_cast<std::uint16_t>(((label & 0x3fff) ^ (label >> 14)) | 0xc000);
}

// CRC-32 (IEEE 802.3).
inline constexpr std::array<std::uint32_t, 256> kCrc32 = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
    table[byte] = crc;
  }
  return table;
}();
constexpr std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ kCrc32[(crc ^ byte) & 0xff];
  return ~crc;
}

// The CRC-32 of the tuple's fields in network byte order.
constexpr std::uint32_t hash_of(const FiveTuple& t) {
  std::array<std::uint8_t, 13> bytes{};
  std::size_t at = 0;
  const auto put = [&](std::uint32_t value, int size) {
    while (size-- > 0) bytes[at++] = static_cast<std::uint8_t>(value >> 8 * size);
  };
  put(t.source, 4);
  put(t.target, 4);
  put(t.protocol, 1);
  put(t.source_port, 2);
  put(t.target_port, 2);
  return crc32(bytes);
}

}  // namespace ghostrank
