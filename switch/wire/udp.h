// Ethernet, IPv4 and UDP, with which both of SwitchML's formats begin, and big-endian fields.
//
//   Ethernet 14 | IPv4 20, no options | UDP 8
//
// Units: bytes. Threading: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ghostrank::switchml {

using Mac = std::array<std::uint8_t, 6>;

// The addresses of one end.
struct Address {
  Mac mac{};
  std::uint32_t ip = 0;  // host order: 10.0.0.1 is 0x0a000001
  std::uint16_t udp = 0;
  bool operator==(const Address&) const = default;
};

inline constexpr std::size_t kIpAt = 14, kUdpAt = kIpAt + 20;  // offsets in a frame
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

// The checksum of an IPv4 header of 20 bytes, ready to be stored; 0 for a header that already holds
// the right one.
std::uint16_t ipv4_checksum(const std::byte* header);

// Whether a frame holds its Ethernet header, all bytes that its IPv4 header announces, and for UDP
// a whole UDP header.
bool whole(std::span<const std::byte> frame);

// Cuts off what follows the IPv4 packet of a whole frame, but keeps Ethernet's minimum of 60 bytes:
// a switch does not forward a sender's trailing bytes.
std::span<const std::byte> without_padding(std::span<const std::byte> frame);

// Whether a frame has all headers of UDP over IPv4 without options.
bool holds_udp(std::span<const std::byte> frame);

// For a frame that holds UDP: whether it has at least `bytes` bytes (the rest is padding), both
// length fields say `bytes`, and it is no fragment. The IPv4 checksum is not checked, as in a
// switch's parser.
bool udp_has(std::span<const std::byte> frame, std::size_t bytes);

Address udp_source(const std::byte* frame);
Address udp_target(const std::byte* frame);

// Writes all three headers of a frame of `bytes` bytes, with the IPv4 checksum and without a UDP
// checksum.
void write_udp_headers(const Address& source, const Address& target, std::size_t bytes,
                       std::byte* frame);

}  // namespace ghostrank::switchml
