// Ghost ranks behind p4lang's simple_switch, which the run starts with our v1model program or one
// of the user's own. Skipped where it or p4c is not on PATH: Debian has neither.
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "tests/network/switched_hosts.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::ForeignSwitch;
using testing::has_bmv2;
using testing::kElements;
using testing::kHosts;
using testing::shell;
using testing::SwitchedHosts;

// bmv2 takes some thousand packets per second, so time-outs are long.
class BehindBmv2 : public ForeignSwitch {
 protected:
  void SetUp() override {
    if (!has_bmv2()) GTEST_SKIP() << "bmv2 or p4c is not on this machine";
    ForeignSwitch::SetUp();
  }
  std::string on_bmv2(const std::string& type, const std::string& settings) const {
    return job(type,
               " -s switch.target=bmv2 -s switch.packet_elements=64 "
               "-s switch.timeout_us=200000 -s cluster.nic.rate=10Mbps " +
                   settings);
  }
};

TEST(HasBmv2, AsksForEveryProgramOfIt) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("ghostrank_bmv2_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const test::Variable path("PATH", folder.string());
  for (const char* program : {"simple_switch", "simple_switch_CLI", "p4c-bm2-ss"}) {
    EXPECT_FALSE(has_bmv2()) << "without " << program;
    std::ofstream(folder / program) << "#!/bin/sh\n";
    std::filesystem::permissions(folder / program, std::filesystem::perms::owner_all);
  }
  EXPECT_TRUE(has_bmv2());
  std::filesystem::remove_all(folder);
}

// Hosts behind a program that p4c compiles for DPDK.
class BehindDpdk : public SwitchedHosts {
 protected:
  void SetUp() override {
    if (testing::targets().back() != "dpdk" || shell("command -v p4c-dpdk >/dev/null") != 0)
      GTEST_SKIP() << "DPDK or p4c-dpdk is not on this machine";
    SwitchedHosts::SetUp();
  }
};

TEST_F(BehindBmv2, AreSummedRightWhateverBecomesOfPackets) {
  const json result = expect_exact(
      on_bmv2("float32",
              "-s switch.loss=0.01 -s fabric.packets.loss=0.01 -s fabric.packets.duplicates=0.02 "
              "-s fabric.packets.reordering=0.02"));
  if (!result.contains("switch")) return;
  EXPECT_EQ(result["switch"]["target"], "bmv2");
  EXPECT_GT(result["packets"]["lost_on_purpose"], 0);
  EXPECT_EQ(result["packets"]["strays"], 0);
  EXPECT_GE(result["packets"]["received"], 3 * kHosts * (kElements / 64));
}

TEST_F(BehindBmv2, PlayARingThroughTheSameSwitch) {
  for (const char* kind : {"ofi", "packets"})
    expect_exact(
        on_bmv2("float32", "-s collectives.allreduce=ring -s fabric.kind=" + std::string(kind)));
}

TEST_F(BehindBmv2, SumOnTwoLevels) { expect_exact(on_bmv2("int32", "-s switch.leaves=2")); }

// A program of the user's own, as P4, with the tables of ours.
TEST_F(BehindBmv2, AreSummedByAProgramWithTheTablesOfOurs) {
  expect_exact(
      on_bmv2("int32", "-s switch.program=" GHOSTRANK_EXAMPLES "/../../switch/p4/bmv2.p4"));
}

TEST_F(BehindDpdk, AreSummedByAProgramThatIsP4) {
  expect_exact(job("int32",
                   " -s switch.target=dpdk -s switch.packet_elements=64 "
                   "-s switch.program=" GHOSTRANK_EXAMPLES "/../../switch/p4/dpdk.p4"));
}

// A program that is not SwitchML: its table entries come from a file, its worker from a plug-in; a
// ring's messages pass the same program.
TEST_F(BehindBmv2, AreSummedByAProgramOfTheUsersOwn) {
  const std::string examples = GHOSTRANK_EXAMPLES;
  const std::string own = " -s switch.program=" + examples +
                          "/slot_max.p4 -s switch.entries=" + examples + "/slot_max.commands";
  const std::string plugin = " -s 'collectives.plugins=[" GHOSTRANK_SLOTS_PLUGIN "]'";
  for (const char* trouble : {"", " -s fabric.packets.loss=0.01 -s fabric.packets.duplicates=0.02"})
    expect_exact(
        on_bmv2("float32", own + plugin + " -s collectives.allreduce=mine/slot-max" + trouble));
  expect_exact(on_bmv2("float32", own + " -s collectives.allreduce=ring -s fabric.kind=packets"));
}

// A switch that runs takes jobs in over its control socket, forgets them, and gives their slots to
// the next.
TEST_F(BehindBmv2, AreAdmittedOneAfterTheOther) {
  turn_offloads_off();
  const pid_t sw = start_switch("bmv2", false);
  for (int times = 0; times < 2; ++times)
    expect_exact(job("int32",
                     " -s switch.target=external -s switch.mac=02:00:00:00:ff:01 "
                     "-s switch.timeout_us=200000 -s cluster.nic.rate=10Mbps -s switch.socket=" +
                         socket()));
  lab->stop(sw);
}

}  // namespace
}  // namespace ghostrank
