// A plan as table entries: ranges of slots, registers side by side, groups of receivers.
#include "switch/tables.h"

#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

TEST(SwitchTables, LayJobsSideBySideInTheRegisters) {
  JobPlan a = job_of(3, 64, 8), b = job_of(2, 64, 16);
  b.name = "b";
  b.first_slot = 100;
  const Tables tables = tables_of(plan_of({a, b}, 3), 64, 1024);
  std::map<int, int> uses;  // by register slot: number of workers that may write it
  for (const Tables::Source& s : tables.sources) {
    ++uses[(s.slot + s.offset) & 0xffff];
  }
  ASSERT_EQ(uses.size(), 24u);
  for (const auto& [slot, workers] : uses) EXPECT_EQ(workers, slot < 8 ? 3 : 2) << slot;
}

TEST(SwitchTables, SendResultsToAllAndRepeatedOnesToTheirSender) {
  const Tables tables = tables_of(plan_of({job_of(3, 64, 8)}, 3), 64, 1024);
  const auto group = [&](std::uint32_t number) { return tables.groups.at(number - 1); };
  for (const Tables::Source& s : tables.sources) {
    EXPECT_EQ(group(s.all).receivers.size(), 3u);
    ASSERT_EQ(group(s.again).receivers.size(), 1u);
    EXPECT_EQ(group(s.again).receivers[0].ip, s.ip);
    EXPECT_EQ(group(s.again).number, s.again);
  }
  ASSERT_EQ(tables.resume.size(), 2u * 8);
  EXPECT_EQ(tables.resume[0].ip, worker(0, 0).ip);
  EXPECT_EQ(tables.resume[0].index, 1u);
}

TEST(SwitchTables, OfALeafLeadUpAndComeDown) {
  JobPlan leaf = job_of(2, 64, 8);
  leaf.uplink = Uplink{2, {2, 2, 2, 2, 2, 2}, 0x0a0000f0};
  const Tables tables = tables_of(plan_of({leaf}, 3), 64, 1024);
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

TEST(SwitchTables, RefuseWhatTheProgramCannotHold) {
  EXPECT_THROW(tables_of(plan_of({job_of(2, 32)}, 2), 64, 1024), std::invalid_argument);
  EXPECT_THROW(tables_of(plan_of({job_of(2, 64, 2000)}, 2), 64, 1024), std::invalid_argument);
  EXPECT_THROW(tables_of(plan_of({job_of(32, 64, 4096)}, 32), 64, 16384), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank::switchml
