// The packet format: packets that were written are read back, and other forms are refused.
#include "switch/wire/switchml.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

TEST(SwitchmlPacket, HasTheDocumentedBytes) {
  Packet p;
  p.source = {{2, 0, 0, 0, 0, 1}, 0x0a000001, 4003};
  p.target = {{2, 0, 0, 0, 0xff, 1}, 0x0a0000fe, 0xbee3};
  p.job = 0x5a;
  p.id = 0x01020304;
  p.slot = 0x1234;
  p.set = 1;
  p.e0 = -2;
  p.e1 = 7;
  p.elements = 256;
  Bytes frame(frame_bytes(256));
  write_header(p, frame.data());
  const unsigned expected[] = {2,    0,    0,    0,    0xff, 1,    2,    0,    0,    0,
                               0,    1,    8,    0,  // Ethernet
                               0x45, 0,    4,    0x26, 0,    0,    0,    0,    64,   17,
                               0,    0,    10,   0,    0,    1,    10,   0,    0,    254,  // IPv4
                               0x0f, 0xa3, 0xbe, 0xe3, 4,    0x12, 0,    0,                // UDP
                               0x13, 0x5a, 1,    2,    3,    4,    0x92, 0x34, 0xfe, 7};
  static_assert(sizeof expected / sizeof *expected == kHeaderBytes);
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    if (i == 24 || i == 25) continue;  // the checksum: checked below
    EXPECT_EQ(std::to_integer<unsigned>(frame[i]), expected[i]) << "byte " << i;
  }
  EXPECT_EQ(ipv4_checksum(frame.data() + 14), 0);
  EXPECT_EQ(frame_bytes(64), 308u);  // 312 with FCS
  EXPECT_EQ(frame_bytes(256), 1076u);
}

TEST(SwitchmlPacket, IsReadAsItWasWritten) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (const int elements : {32, 64, 256}) {
    for (int i = 0; i < 100; ++i) {
      Packet p;
      p.source = {{2, 1, 1, 1, 1, 1}, random(), static_cast<std::uint16_t>(random())};
      p.target = {
          {2, 2, 2, 2, 2, 2}, random(), static_cast<std::uint16_t>(kUdpPort + random() % 16)};
      p.job = static_cast<std::uint8_t>(random());
      p.id = random();
      p.slot = static_cast<std::uint16_t>(random() % kMaxSlots);
      p.set = random() % 2;
      p.e0 = static_cast<std::int8_t>(random());
      p.e1 = static_cast<std::int8_t>(random());
      p.elements = elements;
      Bytes frame(frame_bytes(elements));
      write_header(p, frame.data());
      Packet q;
      ASSERT_EQ(parse(frame, q), Kind::switchml);
      EXPECT_EQ(q.source, p.source);
      EXPECT_EQ(q.target, p.target);
      EXPECT_EQ(std::tie(q.job, q.id, q.slot, q.set, q.e0, q.e1, q.elements),
                std::tie(p.job, p.id, p.slot, p.set, p.e0, p.e1, p.elements));
      EXPECT_EQ(q.values, frame.data() + kHeaderBytes);
    }
  }
}

TEST(SwitchmlPacket, OfTheOtherTypesNamesAWorkerAndMayHaveNoElements) {
  for (const PacketType type : {PacketType::to_one, PacketType::from_one})
    for (const int elements : {0, 32, 64, 256}) {
      Packet p;
      p.target.udp = kUdpPort;
      p.type = type;
      p.worker = 0x0102;
      p.elements = elements;
      Bytes frame(frame_bytes(elements, type));
      ASSERT_EQ(frame.size(), kHeaderBytes + 2 + 4 * static_cast<std::size_t>(elements));
      write_header(p, frame.data());
      Packet q;
      ASSERT_EQ(parse(frame, q), Kind::switchml) << elements;
      EXPECT_EQ(std::tie(q.type, q.worker, q.elements), std::tie(type, p.worker, elements));
      EXPECT_EQ(q.values, elements == 0 ? nullptr : frame.data() + frame.size() - 4 * elements);
      for (const unsigned first : {0x07u, 0x17u, 0x22u, 0x2fu, 0x41u}) {
        frame[42] = static_cast<std::byte>(first);
        EXPECT_EQ(parse(frame, q), Kind::malformed) << first << ", " << elements;
      }
    }
}

TEST(EthernetFrame, IsWholeWhereItsHeadersFit) {
  const Bytes good = chunk(0, 1, 0, 5, 64);
  EXPECT_TRUE(whole(good));
  EXPECT_FALSE(whole(std::span(good).first(13)));
  EXPECT_FALSE(whole(std::span(good).first(33))) << "less than an IPv4 header";
  EXPECT_FALSE(whole(std::span(good).first(good.size() - 1))) << "shorter than it says";
  Bytes no_udp(good.begin(), good.begin() + 41);
  store16(no_udp.data() + 16, 41 - 14);
  EXPECT_FALSE(whole(no_udp)) << "no room for the UDP header that it claims";
  no_udp[23] = std::byte{1};
  EXPECT_TRUE(whole(no_udp)) << "ICMP";
}

TEST(EthernetFrame, LosesWhatFollowsItsPacketButNotEthernetsPadding) {
  Bytes frame = chunk(0, 1, 0, 5, 32);
  const std::size_t bytes = frame.size();
  frame.resize(bytes + 9);
  EXPECT_EQ(without_padding(frame).size(), bytes);
  store16(frame.data() + 16, 28);  // an IPv4 packet of 28 bytes in a frame of 60 or more
  EXPECT_EQ(without_padding(frame).size(), 60u);
  EXPECT_EQ(without_padding(std::span(frame).first(50)).size(), 50u);
  frame[12] = std::byte{0x86};
  EXPECT_EQ(without_padding(frame).size(), bytes + 9) << "not IPv4";
}

TEST(SwitchmlPacket, OfAnotherFormIsMalformed) {
  const Bytes good = chunk(0, 1, 0, 5, 64);
  Packet p;
  ASSERT_EQ(parse(good, p), Kind::switchml);
  const auto with = [&](std::size_t at, unsigned value) {
    Bytes frame = good;
    frame[at] = static_cast<std::byte>(value);
    return parse(frame, p);
  };
  EXPECT_EQ(with(42, 0x21), Kind::malformed) << "message type";
  EXPECT_EQ(with(42, 0x19), Kind::malformed) << "unused bit";
  EXPECT_EQ(with(42, 0x12), Kind::malformed) << "size 2 is not in use";
  EXPECT_EQ(with(42, 0x13), Kind::malformed) << "more elements than there are";
  EXPECT_EQ(with(42, 0x10), Kind::malformed) << "fewer elements than there are";
  EXPECT_EQ(with(17, 0), Kind::malformed) << "IPv4 length";
  EXPECT_EQ(with(39, 0), Kind::malformed) << "UDP length";
  EXPECT_EQ(with(20, 0x20), Kind::malformed) << "fragment";
  EXPECT_EQ(with(20, 0x80), Kind::malformed) << "the reserved bit";
  EXPECT_EQ(with(20, 0x40), Kind::switchml) << "do not fragment";
  EXPECT_EQ(with(12, 0x86), Kind::other) << "not IPv4";
  EXPECT_EQ(with(14, 0x46), Kind::other) << "IPv4 options";
  EXPECT_EQ(with(23, 6), Kind::other) << "TCP";
  EXPECT_EQ(with(36, 0xbf), Kind::other) << "another UDP port";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(parse(std::span(good).first(size), p), size < 42 ? Kind::other : Kind::malformed)
        << size;
  }
}

}  // namespace
}  // namespace ghostrank::switchml
