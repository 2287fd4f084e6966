// Forty workers, more than one switch takes: two leaves sum for twenty each, a spine sums for the
// leaves, and its results come down through the leaves. On every target, by captures: the leaves'
// sums become the spine's input, the spine's results the leaves' input.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "switch/ports/pcap_file.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

namespace fs = std::filesystem;

constexpr int kLeaves = 2, kWorkersOfLeaf = 20, kElements = 32, kRounds = 6, kSlots = 2;
constexpr int kUplink = kWorkersOfLeaf;  // port of a leaf

class TwoLevels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "dpdk" &&
        !fs::exists(fs::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk"))
      GTEST_SKIP() << "built without DPDK";
    folder_ = fs::path(testing::TempDir()) / ("levels." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string leaf(int l) { return "leaf" + std::to_string(l); }
  std::string in(const std::string& sw, int p) const {
    return file(sw + ".in" + std::to_string(p) + ".pcap");
  }
  std::string out(const std::string& sw, int p) const {
    return file(sw + ".out" + std::to_string(p) + ".pcap");
  }

  // The plan of a switch whose addresses end in `own`.
  void plan(const std::string& sw, int own, const std::string& job) const {
    std::ofstream(file(sw + ".yaml"))
        << "schema: ghostrank/switch/1\nmac: 02:00:00:00:ff:0" << own << "\nip: 10.0.1." << own
        << "\njobs:\n  - name: a\n    elements: " << kElements << "\n    slots: " << kSlots << "\n"
        << job;
  }
  static std::string member(int port, const std::string& mac, const std::string& ip) {
    return "{port: " + std::to_string(port) + ", mac: \"" + mac + "\", ip: " + ip + "}\n";
  }

  void run(const std::string& sw, int ports) const {
    std::string names;
    for (int p = 0; p < ports; ++p) {
      const std::string from = fs::exists(in(sw, p)) ? in(sw, p) : "";
      names += (p == 0 ? "" : ",") + from + ":" + out(sw, p);
    }
    const int status = std::system((std::string(GHOSTRANK_BINARY) + " switch run --target " +
                                    GetParam() + " --plan " + file(sw + ".yaml") + " --ports " +
                                    names + " >" + file("log") + " 2>&1")
                                       .c_str());
    std::ifstream log(file("log"));
    ASSERT_EQ(WEXITSTATUS(status), 0) << std::string(std::istreambuf_iterator<char>(log), {});
  }

 private:
  fs::path folder_;
};

std::int32_t first_of(int worker, int round) { return 1000 * round + worker; }

TEST_P(TwoLevels, SumOverMoreWorkersThanASwitchTakes) {
  // Two hexadecimal digits, for the last byte of a MAC address.
  const auto two = [](int n) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(n) & 0xff);
    return std::string(text);
  };
  std::string leaves;
  for (int l = 0; l < kLeaves; ++l) {
    const std::string own = std::to_string(l + 1);
    leaves += "      - " + member(l, "02:00:00:00:ff:0" + own, "10.0.1." + own);
    std::string workers;
    for (int w = 0; w < kWorkersOfLeaf; ++w) {
      workers +=
          "      - " + member(w, "02:00:00:00:00:" + two(w), "10.0.0." + std::to_string(w + 1));
      PcapWriter writer(in(leaf(l), w));
      for (int round = 0; round < kRounds; ++round) {
        const Bytes frame =
            chunk(w, round % kSlots, round / kSlots % 2, first_of(l * kWorkersOfLeaf + w, round),
                  kElements, static_cast<std::uint32_t>(round));
        const auto time = static_cast<std::uint64_t>(1'000'000 * (round + 1) + w);
        std::memcpy(writer.frame(time, frame.size()), frame.data(), frame.size());
      }
    }
    plan(leaf(l), l + 1,
         "    uplink: " + member(kUplink, "02:00:00:00:ff:09", "10.0.1.9") + "    workers:\n" +
             workers);
    run(leaf(l), kWorkersOfLeaf + 1);
    fs::rename(out(leaf(l), kUplink), in("spine", l));
  }
  plan("spine", 9, "    worker_port: 48864\n    workers:\n" + leaves);
  run("spine", kLeaves);
  for (int l = 0; l < kLeaves; ++l) {
    fs::rename(out("spine", l), in(leaf(l), kUplink));
    run(leaf(l), kWorkersOfLeaf + 1);
    for (int w = 0; w < kWorkersOfLeaf; ++w) {
      SCOPED_TRACE("worker " + std::to_string(w) + " of leaf " + std::to_string(l));
      PcapReader results(out(leaf(l), w));
      for (int round = 0; round < kRounds; ++round) {
        const auto frame = results.next();
        ASSERT_TRUE(frame);
        Packet packet;
        ASSERT_EQ(parse_result(frame->bytes, packet), Kind::switchml);
        EXPECT_EQ(packet.target.udp, kWorkerPort);
        EXPECT_EQ(packet.target.ip, worker(w, w).ip);
        EXPECT_EQ(packet.target.mac, worker(w, w).mac);
        EXPECT_EQ(packet.id, static_cast<std::uint32_t>(round));
        constexpr int kAll = kLeaves * kWorkersOfLeaf;
        for (int i = 0; i < kElements; ++i) {
          const auto sum = static_cast<std::int32_t>(load32(packet.values + 4 * i));
          ASSERT_EQ(sum, kAll * (1000 * round + i) + kAll * (kAll - 1) / 2);
        }
      }
      EXPECT_FALSE(results.next());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TwoLevels, testing::Values("compiled", "dpdk"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace ghostrank::switchml
