// pcap files: reading back what was written, foreign byte order, microseconds, damaged files.
#include "switch/ports/pcap_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ghostrank {
namespace {

class PcapFile : public testing::Test {
 protected:
  std::string path() const {
    return (std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".pcap"))
        .string();
  }
  void TearDown() override { std::filesystem::remove(path()); }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string why() const {
    try {
      PcapReader reader(path());
      while (reader.next()) {
      }
      return {};
    } catch (const std::runtime_error& e) {
      return e.what();
    }
  }
};

TEST_F(PcapFile, ReadsWhatItWrote) {
  constexpr int kFrames = 5000;  // more than one buffer
  {
    PcapWriter writer(path());
    for (int i = 0; i < kFrames; ++i) {
      const std::size_t bytes = 60 + static_cast<std::size_t>(i % 1000);
      std::memset(writer.frame(static_cast<std::uint64_t>(i) * 1'000'000'007, bytes), i & 0xff,
                  bytes);
    }
    writer.finish();
    EXPECT_EQ(writer.frames(), static_cast<std::uint64_t>(kFrames));
  }
  PcapReader reader(path());
  for (int i = 0; i < kFrames; ++i) {
    const auto frame = reader.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->time_ns, static_cast<std::uint64_t>(i) * 1'000'000'007);
    ASSERT_EQ(frame->bytes.size(), 60 + static_cast<std::size_t>(i % 1000));
    EXPECT_EQ(std::to_integer<int>(frame->bytes.back()), i & 0xff);
  }
  EXPECT_FALSE(reader.next());
}

TEST_F(PcapFile, ReadsTheOtherByteOrderAndMicroseconds) {
  const unsigned char file[] = {0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0,  0,    0,
                                0,    0,    0,    1,    0, 0, 0, 0, 0, 1, 0, 0,  0,    3,
                                0,    0,    0,    5,    0, 0, 0, 2, 0, 0, 0, 60, 0xaa, 0xbb};
  write(std::string(reinterpret_cast<const char*>(file), sizeof file));
  PcapReader reader(path());
  const auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->time_ns, 3'000'005'000u);
  ASSERT_EQ(frame->bytes.size(), 2u);
  EXPECT_EQ(std::to_integer<int>(frame->bytes[1]), 0xbb);
}

// A full segment on a loopback device whose MTU is 65,536.
TEST_F(PcapFile, ReadsFramesAsLongAsTcpdumpWritesThem) {
  constexpr std::size_t kSegment = 14 + 65'535;
  {
    PcapWriter writer(path());
    std::memset(writer.frame(1, kSegment), 1, kSegment);
    std::memset(writer.frame(2, 1 << 18), 2, 1 << 18);
    std::memset(writer.frame(3, (1 << 18) + 1), 3, (1 << 18) + 1);
  }
  PcapReader reader(path());
  EXPECT_EQ(reader.next()->bytes.size(), kSegment);
  EXPECT_EQ(reader.next()->bytes.size(), std::size_t{1} << 18);
  EXPECT_THROW(reader.next(), std::runtime_error);
}

TEST_F(PcapFile, IsNotMappedAfterItIsRefused) {
  const auto mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    return std::string(std::istreambuf_iterator<char>(maps), {}).find(path()) != std::string::npos;
  };
  PcapWriter(path()).finish();
  {
    const PcapReader reader(path());
    EXPECT_TRUE(mapped());
  }
  EXPECT_FALSE(mapped());
  write(std::string(100, 'x'));
  EXPECT_NE(why(), "");
  EXPECT_FALSE(mapped());
}

TEST_F(PcapFile, SaysWhatIsWrongWithADamagedOne) {
  std::string good;
  {
    PcapWriter writer(path());
    std::memset(writer.frame(0, 64), 1, 64);
  }
  {
    std::ifstream in(path(), std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  using testing::HasSubstr;
  EXPECT_EQ(why(), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    if (size == 24) continue;  // a valid file without frames
    write(good.substr(0, size));
    EXPECT_NE(why(), "") << size;
  }
  std::string bad = good;
  bad[0] = 'x';
  write(bad);
  EXPECT_THAT(why(), HasSubstr("no classic pcap file"));
  bad = good;
  bad[20] = 113;
  write(bad);
  EXPECT_THAT(why(), HasSubstr("Ethernet"));
  bad = good;
  bad[24 + 11] = 0x7f;
  write(bad);
  EXPECT_THAT(why(), HasSubstr("at byte 24"));
  std::filesystem::remove(path());
  EXPECT_THAT(why(), HasSubstr("cannot be opened"));
}

}  // namespace
}  // namespace ghostrank
