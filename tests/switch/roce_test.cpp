// SwitchML over RoCEv2: packets that were written are read back, here and by tshark; malformed ones
// are refused; the packets of a queue pair find their slots.
#include "switch/wire/roce.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include <gtest/gtest.h>

#include "switch/ports/pcap_file.h"
#include "tests/shell.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

constexpr std::array kOpcodes{RoceOpcode::first, RoceOpcode::middle,
                              RoceOpcode::last,  RoceOpcode::last_immediate,
                              RoceOpcode::only,  RoceOpcode::only_immediate};

RocePacket packet_of(RoceOpcode opcode, std::uint32_t sequence = 0xabcdef, int slot = 0x5555) {
  RocePacket p;
  p.source = {worker(3, 3).mac, worker(3, 3).ip, 0xc001};
  p.target = {kSwitchMac, kSwitchIp, kRocePort};
  p.opcode = opcode;
  p.queue_pair = switch_queue_pair(29, 300);
  p.sequence = sequence;
  if (begins(opcode)) {
    p.address = 0x0123456789abcdef;
    p.remote_key = remote_key_of({static_cast<std::uint16_t>(slot), 1});
    p.length = 4096;
  }
  if (has_immediate(opcode)) {
    p.message = 0xbeef;
    p.e0 = -7;
    p.e1 = 120;
  }
  return p;
}

Bytes frame_of(const RocePacket& packet) {
  Bytes frame(roce_frame_bytes(packet.opcode));
  write_roce_header(packet, frame.data());
  for (int i = 0; i < kRoceElements; ++i)
    store32(frame.data() + roce_header_bytes(packet.opcode) + 4 * i,
            static_cast<std::uint32_t>(i - 5));
  return frame;
}

TEST(RocePacket, IsReadAsItWasWritten) {
  for (const RoceOpcode opcode : kOpcodes) {
    const RocePacket p = packet_of(opcode);
    const Bytes frame = frame_of(p);
    RocePacket q;
    ASSERT_EQ(parse_roce(frame, q), Kind::switchml);
    EXPECT_EQ(q.source, p.source);
    EXPECT_EQ(q.target, p.target);
    EXPECT_EQ(q.opcode, opcode);
    EXPECT_EQ(worker_of(q.queue_pair), 29);
    EXPECT_EQ(queue_of(q.queue_pair), 300);
    EXPECT_EQ(q.sequence, 0xabcdefu);
    EXPECT_EQ(q.address, p.address);
    EXPECT_EQ(q.remote_key, p.remote_key);
    EXPECT_EQ(q.length, p.length);
    EXPECT_EQ(q.message, p.message);
    EXPECT_EQ(q.e0, p.e0);
    EXPECT_EQ(q.e1, p.e1);
    EXPECT_EQ(load32(q.values), static_cast<std::uint32_t>(-5));
  }
}

// The sizes behind SwitchML's published rates: 1,024 bytes of data take 1,106 on the wire,
// including preamble, gap and FCS (24 bytes).
TEST(RocePacket, HasTheSizesOfTheFormat) {
  EXPECT_EQ(roce_frame_bytes(RoceOpcode::middle) + 24, 1106u);
  EXPECT_EQ(roce_frame_bytes(RoceOpcode::only_immediate) + 24, 1126u);
}

TEST(RocePacket, OfAnotherFormIsMalformed) {
  const Bytes good = frame_of(packet_of(RoceOpcode::only_immediate));
  RocePacket p;
  ASSERT_EQ(parse_roce(good, p), Kind::switchml);
  const auto with = [&](std::size_t at, unsigned value) {
    Bytes frame = good;
    frame[at] = static_cast<std::byte>(value);
    return parse_roce(frame, p);
  };
  EXPECT_EQ(with(42, 0x25), Kind::malformed) << "not an opcode of these";
  EXPECT_EQ(with(42, 0x2c), Kind::malformed) << "not an opcode of these";
  EXPECT_EQ(with(42, 0x27), Kind::malformed) << "a middle packet is shorter";
  EXPECT_EQ(with(17, 0), Kind::malformed) << "IPv4 length";
  EXPECT_EQ(with(39, 0), Kind::malformed) << "UDP length";
  EXPECT_EQ(with(20, 0x20), Kind::malformed) << "fragment";
  EXPECT_EQ(with(23, 6), Kind::other) << "TCP";
  EXPECT_EQ(with(36, 0), Kind::other) << "another UDP port";
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_NE(parse_roce(cut, p), Kind::switchml) << bytes;
  }
}

TEST(RocePacket, SaysInItsRemoteKeyWhereItBelongs) {
  for (const RoceSlot place : {RoceSlot{0, 0}, RoceSlot{1, 0}, RoceSlot{0x7fff, 1}}) {
    EXPECT_EQ(slot_of(remote_key_of(place)).slot, place.slot);
    EXPECT_EQ(slot_of(remote_key_of(place)).set, place.set);
  }
  EXPECT_EQ(remote_key_of({3, 1}), 7u) << "the set in bit 0, the slot above it";
}

TEST(RoceQueue, LeadsAMessageFromSlotToSlot) {
  RoceQueue queue;
  int slot = 100;
  std::uint32_t sequence = 0xfffffe;  // wraps within the message
  for (const RoceOpcode opcode :
       {RoceOpcode::first, RoceOpcode::middle, RoceOpcode::middle, RoceOpcode::last_immediate}) {
    const auto place = follow(queue, packet_of(opcode, sequence, 100));
    ASSERT_TRUE(place);
    EXPECT_EQ(place->slot, slot++);
    EXPECT_EQ(place->set, 1);
    sequence = (sequence + 1) & 0xffffff;
  }
  EXPECT_FALSE(follow(queue, packet_of(RoceOpcode::middle, sequence))) << "the message has ended";
}

TEST(RoceQueue, DropsWhatFollowsAGapUntilAMessageBegins) {
  RoceQueue queue;
  EXPECT_FALSE(follow(queue, packet_of(RoceOpcode::middle, 1))) << "nothing has begun";
  EXPECT_TRUE(follow(queue, packet_of(RoceOpcode::first, 10)));
  EXPECT_FALSE(follow(queue, packet_of(RoceOpcode::middle, 12)));
  EXPECT_FALSE(follow(queue, packet_of(RoceOpcode::middle, 11))) << "the gap is not forgotten";
  EXPECT_FALSE(follow(queue, packet_of(RoceOpcode::last, 13)));
  const auto again = follow(queue, packet_of(RoceOpcode::first, 10, 7));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->slot, 7);
  EXPECT_EQ(follow(queue, packet_of(RoceOpcode::last, 11))->slot, 8);
}

TEST(RoceDissector, ReadsEveryFieldThatThePacketHas) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) GTEST_SKIP() << "tshark is missing";
  const std::string file =
      (std::filesystem::path(testing::TempDir()) / ("roce." + std::to_string(getpid()) + ".pcap"))
          .string();
  std::string elements, expected;
  for (int i = 0; i < kRoceElements; ++i) elements += (i == 0 ? "" : " ") + std::to_string(i - 5);
  {
    PcapWriter writer(file);
    for (const RoceOpcode opcode : kOpcodes) {
      const Bytes frame = frame_of(packet_of(opcode));
      std::memcpy(writer.frame(0, frame.size()), frame.data(), frame.size());
      char code[8];
      std::snprintf(code, sizeof code, "0x%02x", static_cast<unsigned>(opcode));
      expected += std::string(code) + ",29,300,11259375," +
                  (begins(opcode) ? "0x0123456789abcdef,21845,1,4096," : ",,,,") +
                  (has_immediate(opcode) ? "48879,-7,120," : ",,,") + elements + "\n";
    }
  }
  std::string command = "tshark -X lua_script:" GHOSTRANK_SOURCE_DIR
                        "/switch/wire/switchml.lua -r " +
                        file + " -T fields -E separator=, -E aggregator=/s";
  for (const char* f : {"opcode", "worker", "queue_pair", "sequence", "address", "slot", "set",
                        "length", "message", "e0", "e1", "element"})
    command += std::string(" -e switchml_roce.") + f;
  const std::string got = test::shell(command + " 2>/dev/null").text;
  std::filesystem::remove(file);
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace ghostrank::switchml
