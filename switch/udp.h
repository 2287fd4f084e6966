// Ethernet, IPv4 and UDP, which both of SwitchML's formats begin with, and big-endian fields.
//
//   Ethernet 14 | IPv4 20, no options | UDP 8
//
// Threading: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ghostrank::switchml {

using Mac = std::array<std::uint8_t, 6>;

// Who sends or receives at one end.
struct Address {
  Mac mac{};
  std::uint32_t ip = 0;  // host order: 10.0.0.1 is 0x0a000001
  std::uint16_t udp = 0;
  bool operator==(const Address&) const = default;
};

inline constexpr std::size_t kIpAt = 14, kUdpAt = kIpAt + 20;  // in a frame
inline constexpr std::size_t kIpChecksumAt = kIpAt + 10;
inline constexpr std::size_t kUdpHeaderBytes = kUdpAt + 8;  // of all three headers

// Big-endian fields.
inline std::uint8_t load8(const std::byte* p) { return std::to_integer<std::uint8_t>(*p); }
inline std::uint16_t load16(const std::byte* p) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(p[0]) << 8 |
                                    std::to_integer<unsigned>(p[1]));
}
inline std::uint32_t load32(const std::byte* p) {
  return static_cast<std::uint32_t>(load16(p)) << 16 | load16(p + 2);
}
inline std::uint64_t load64(const std::byte* p) {
  return static_cast<std::uint64_t>(load32(p)) << 32 | load32(p + 4);
}
inline void store16(std::byte* p, std::uint16_t v) {
  p[0] = static_cast<std::byte>(v >> 8);
  p[1] = static_cast<std::byte>(v & 0xff);
}
inline void store32(std::byte* p, std::uint32_t v) {
  store16(p, static_cast<std::uint16_t>(v >> 16));
  store16(p + 2, static_cast<std::uint16_t>(v & 0xffff));
}
inline void store64(std::byte* p, std::uint64_t v) {
  store32(p, static_cast<std::uint32_t>(v >> 32));
  store32(p + 4, static_cast<std::uint32_t>(v));
}

// 0x0a000001 is "10.0.0.1".
std::string text_of_ip(std::uint32_t ip);

// The sum of an IPv4 header of 20 bytes, ready to be stored; 0 over a header that holds a right
// one.
std::uint16_t ipv4_checksum(const std::byte* header);

// No shorter than an Ethernet header, nor than its IPv4 header says; where that says UDP, with room
// for a UDP header.
bool whole(std::span<const std::byte> frame);

// A whole frame without what follows its IPv4 packet, but no shorter than Ethernet pads to (60): a
// switch hands on nobody's trailing bytes.
std::span<const std::byte> without_padding(std::span<const std::byte> frame);

// IPv4 without options and UDP, all headers there.
bool holds_udp(std::span<const std::byte> frame);

// Of a frame that holds UDP: whether it has `bytes` (more: padding), says so in both lengths, and
// is no fragment. The IPv4 checksum is not looked at, as in a switch's parser.
bool udp_has(std::span<const std::byte> frame, std::size_t bytes);

Address udp_source(const std::byte* frame);
Address udp_target(const std::byte* frame);

// All three headers of a frame of `bytes`, with the IPv4 checksum and without one of UDP.
void write_udp_headers(const Address& source, const Address& target, std::size_t bytes,
                       std::byte* frame);

}  // namespace ghostrank::switchml
