// The Wireshark dissector reads the packets that the C++ code writes. Skipped where tshark is
// missing.
#include <filesystem>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "switch/ports/pcap_file.h"
#include "tests/shell.h"
#include "tests/switch/sparse_support.h"

namespace ghostrank::switchml {
namespace {

// Returns what tshark reads in a file, then removes the file: a line for each packet, fields
// separated by commas, their values by blanks.
std::string fields_of(const std::string& file, std::initializer_list<const char*> names) {
  std::string fields;
  for (const char* name : names) fields += std::string(" -e ") + name;
  const std::string got =
      test::shell("tshark -X lua_script:" GHOSTRANK_SOURCE_DIR "/switch/wire/switchml.lua -r " +
                  file + " -T fields -E separator=, -E aggregator=/s" + fields + " 2>/dev/null")
          .text;
  std::filesystem::remove(file);
  return got;
}

std::string pcap_file() {
  return (std::filesystem::path(testing::TempDir()) /
          ("dissector." + std::to_string(getpid()) + ".pcap"))
      .string();
}

TEST(SwitchmlDissector, ReadsEveryFieldThatThePacketHas) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) GTEST_SKIP() << "tshark is missing";
  const std::string file = pcap_file();
  std::string expected;
  {
    PcapWriter writer(file);
    for (const int elements : {32, 64, 256}) {
      const int slot = 1000 + elements, set = elements == 64;
      Bytes frame = chunk(3, slot, set, -5, elements, 0x01020304, -7);
      frame[43] = std::byte{0x5a};
      std::memcpy(writer.frame(0, frame.size()), frame.data(), frame.size());
      expected += "1,0," +
                  std::string(elements == 32   ? "0"
                              : elements == 64 ? "1"
                                               : "3") +
                  ",90,16909060," + std::to_string(set) + "," + std::to_string(slot) + ",-7,-7,,";
      for (int i = 0; i < elements; ++i) expected += (i == 0 ? "" : " ") + std::to_string(i - 5);
      expected += "\n";
    }
    Packet credit;
    credit.target.udp = kUdpPort;
    credit.type = PacketType::from_one;
    credit.worker = 513;
    write_header(credit, writer.frame(0, frame_bytes(0, credit.type)));
    expected += "3,0,7,0,0,0,0,0,0,513,\n";
    Bytes bad = chunk(0, 0, 0, 0, 64);
    bad[42] = std::byte{0x13};  // claims more elements than it has
    std::memcpy(writer.frame(0, bad.size()), bad.data(), bad.size());
    expected += "1,0,3,,,,,,,,\n";
  }
  const std::string got =
      fields_of(file, {"switchml.type", "switchml.unused", "switchml.size", "switchml.job",
                       "switchml.id", "switchml.set", "switchml.slot", "switchml.e0", "switchml.e1",
                       "switchml.worker", "switchml.element"});
  EXPECT_EQ(got, expected);
}

TEST(SwitchmlDissector, ReadsBlocksOfOmniReduce) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) GTEST_SKIP() << "tshark is missing";
  const std::string file = pcap_file();
  std::string expected;
  {
    PcapWriter writer(file);
    for (const int elements : {0, 32, 64, 256}) {
      const Bytes frame = block_of(2, 70, 1, 0x01020304, 99, -3, elements);
      std::memcpy(writer.frame(0, frame.size()), frame.data(), frame.size());
      expected += "16909060,1,70,99,1,";
      for (int i = 0; i < elements; ++i) expected += (i == 0 ? "" : " ") + std::to_string(i - 3);
      expected += "\n";
    }
    Bytes bad = block_of(2, 70, 1, 0, 0, 0, 32);
    bad[kSparseHeaderBytes - 1] = std::byte{2};  // floats
    std::memcpy(writer.frame(0, bad.size()), bad.data(), bad.size());
    expected += "0,1,70,0,2,\n";
  }
  EXPECT_EQ(fields_of(file, {"omnireduce.round", "omnireduce.set", "omnireduce.slot",
                             "omnireduce.next", "omnireduce.type", "omnireduce.element"}),
            expected);
}

}  // namespace
}  // namespace ghostrank::switchml
