#include "tools/doctor/findings.h"

#include <gtest/gtest.h>

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
  for (const auto& look : {look_at_cores, look_at_network, look_at_limits, look_at_programs}) {
    const Findings found = look();
    EXPECT_FALSE(found.empty());
    for (const Finding& f : found) EXPECT_EQ(f.remedy.empty(), !f.weak) << f.area << " " << f.name;
  }
}

}  // namespace
}  // namespace ghostrank
