#include "tools/doctor/findings.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/variable.h"

namespace ghostrank {
namespace {

TEST(Doctor, CallsBbrWeakBetweenProcessesOfOneMachine) {
  for (const char* control : {"bbr", "bbr2"}) {
    const Finding f = congestion_control_finding(control, "reno cubic bbr");
    EXPECT_TRUE(f.weak);
    EXPECT_NE(f.value.find("processes of one machine"), std::string::npos) << f.value;
    EXPECT_EQ(f.remedy.rfind("sudo sysctl -w net.ipv4.tcp_congestion_control=cubic ", 0), 0u)
        << f.remedy;
  }
}

TEST(Doctor, LoadsCubicFirstWhereTheKernelDoesNotHaveIt) {
  EXPECT_EQ(congestion_control_finding("bbr", "reno bbr")
                .remedy.rfind("sudo modprobe tcp_cubic && sudo sysctl -w ", 0),
            0u);
}

TEST(Doctor, LeavesOtherCongestionControlsAlone) {
  for (const char* control : {"cubic", "reno", "dctcp", ""})
    EXPECT_FALSE(congestion_control_finding(control, "reno cubic").weak) << control;
}

TEST(Doctor, HasARemedyOnlyWhereSomethingIsWeak) {
  for (const auto& look :
       {look_at_cores, look_at_network, look_at_limits, look_at_switches, look_at_programs}) {
    const Findings found = look();
    EXPECT_FALSE(found.empty());
    for (const Finding& f : found) EXPECT_EQ(f.remedy.empty(), !f.weak) << f.area << " " << f.name;
  }
}

TEST(Doctor, NamesWhatATargetOfASwitchMisses) {
  const auto bmv2 = [] { return look_at_switches().back().value; };
  const std::string folder = testing::TempDir() + "doctor_switches";
  std::filesystem::create_directories(folder);
  const test::Variable path("PATH", folder);
  for (const char* program : {"simple_switch", "p4c-bm2-ss"}) {
    std::ofstream(folder + "/" + program).flush();
    std::filesystem::permissions(folder + "/" + program, std::filesystem::perms::owner_all);
  }
  EXPECT_EQ(bmv2(), "not on the path: simple_switch_CLI (p4lang's)");
  std::filesystem::copy(folder + "/simple_switch", folder + "/simple_switch_CLI");
  EXPECT_EQ(bmv2(), folder + "/simple_switch");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ghostrank
