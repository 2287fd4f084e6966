// A plan as table entries: ranges of slots, registers side by side, groups of receivers.
#include "switch/tables.h"

#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

Tables of_first(const JobPlan& job) { return tables_of(job, Allocation(64, 1024).admit(job)); }

TEST(SwitchTables, LayJobsSideBySideInTheRegisters) {
  JobPlan a = job_of(3, 64, 8), b = job_of(2, 64, 16);
  b.name = "b";
  b.first_slot = 100;
  Allocation program(64, 1024);
  std::map<std::uint32_t, int> uses;  // by row: number of workers that may write it
  for (const JobPlan& job : {a, b}) {
    for (const Tables::Source& s : tables_of(job, program.admit(job)).sources) ++uses[s.row];
  }
  ASSERT_EQ(uses.size(), 24u);
  for (const auto& [row, workers] : uses) EXPECT_EQ(workers, row < 16 ? 3 : 2) << row;
}

TEST(SwitchTables, SendResultsToAllAndRepeatedOnesToTheirSender) {
  const Tables tables = of_first(job_of(3, 64, 8));
  const auto group = [&](std::uint32_t number) { return tables.groups.at(number - 1); };
  for (const Tables::Source& s : tables.sources) {
    EXPECT_EQ(group(s.all).receivers.size(), 3u);
    ASSERT_EQ(group(s.again).receivers.size(), 1u);
    EXPECT_EQ(group(s.again).receivers[0].ip, s.ip);
    EXPECT_EQ(group(s.again).number, s.again);
  }
}

TEST(SwitchTables, OfALeafLeadUpAndComeDown) {
  JobPlan leaf = job_of(2, 64, 8);
  leaf.uplink = Uplink{2, {2, 2, 2, 2, 2, 2}, 0x0a0000f0};
  const Tables tables = of_first(leaf);
  for (const Tables::Source& s : tables.sources) {
    const Tables::Group& all = tables.groups.at(s.all - 1);
    if (s.upper) {
      EXPECT_EQ(s.port, 2);
      EXPECT_EQ(all.receivers.size(), 2u);
    } else {
      EXPECT_EQ(s.all, s.again);
      ASSERT_EQ(all.receivers.size(), 1u);
      EXPECT_EQ(all.receivers[0].port, 2);
      EXPECT_EQ(all.receivers[0].udp, kUdpPort);
    }
  }
}

TEST(Allocation, GivesWhatARemovedJobHadToTheNext) {
  Allocation program(64, 24);
  JobPlan a = job_of(3, 64, 8), b = a, c = a, d = a;
  b.name = "b";
  b.first_slot = 8;
  c.name = "c";
  c.first_slot = 16;
  d.name = "d";
  d.first_slot = 24;
  program.admit(a);
  const Placement second = program.admit(b);
  const Placement third = program.admit(c);
  EXPECT_EQ(second.first_slot, 8);
  EXPECT_EQ(second.first_group, 5);
  EXPECT_EQ(third.job, 2);
  EXPECT_THROW(program.admit(d), std::invalid_argument);
  program.remove("b");
  const Placement again = program.admit(d);
  EXPECT_EQ(again.first_slot, 8);
  EXPECT_EQ(again.first_group, 5);
  EXPECT_EQ(again.job, 1);
}

TEST(Allocation, RefusesWhatTheProgramCannotHold) {
  const auto refused = [](const JobPlan& job, int slots) {
    EXPECT_THROW(Allocation(64, slots).admit(job), std::invalid_argument);
  };
  refused(job_of(2, 32), 1024);
  refused(job_of(2, 64, 2000), 1024);
  refused(job_of(32, 64, 4096), 16384);
  JobPlan twins = job_of(2, 64);
  twins.workers[1].ip = twins.workers[0].ip;
  refused(twins, 1024);
}

}  // namespace
}  // namespace ghostrank::switchml
