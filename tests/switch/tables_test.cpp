// A plan as table entries: ranges of slots, adjacent registers, groups of receivers.
#include "switch/tables.h"

#include <map>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

Tables of_first(const JobPlan& job) {
  return tables_of(job, Allocation(64, 1024, true).admit(job));
}

TEST(SwitchTables, LayJobsSideBySideInTheRegisters) {
  JobPlan a = job_of(3, 64, 8), b = job_of(2, 64, 16);
  b.name = "b";
  b.first_slot = 100;
  Allocation program(64, 1024);
  std::map<std::uint32_t, int> uses;  // by row: number of workers that may write to it
  for (const JobPlan& job : {a, b}) {
    for (const Tables::Source& s : tables_of(job, program.admit(job)).sources) ++uses[s.row];
  }
  ASSERT_EQ(uses.size(), 48u);
  for (const auto& [row, workers] : uses) EXPECT_EQ(workers, row < 16 ? 3 : 2) << row;
}

const Tables::Group& group_of(const Tables& tables, std::uint32_t number) {
  for (const Tables::Group& group : tables.groups) {
    if (group.number == number) return group;
  }
  throw std::out_of_range("no group " + std::to_string(number));
}

std::uint32_t counted_in(const Tables& tables, int row) {
  return static_cast<std::uint32_t>(tables.row() + row);
}

TEST(SwitchTables, RefuseAGuardThatTheProgramDoesNotHave) {
  JobPlan job = job_of(2, 64);
  job.guarded = true;
  EXPECT_THROW(Allocation(64, 1024).admit(job), std::invalid_argument);
  Allocation guards(64, 1024, true);
  for (const Tables::Source& s : tables_of(job, guards.admit(job)).sources)
    EXPECT_EQ(s.other, kGuarded);
}

TEST(SwitchTables, SendResultsToAllAndRepeatedOnesToTheirSender) {
  const Tables tables = of_first(job_of(3, 64, 8));
  EXPECT_EQ(group_of(tables, counted_in(tables, kBroadcasts)).receivers.size(), 3u);
  for (const Tables::Source& s : tables.sources) {
    const Tables::Group& again = group_of(tables, s.again);
    ASSERT_EQ(again.receivers.size(), 1u);
    EXPECT_EQ(again.receivers[0].ip, s.ip);
  }
}

TEST(SwitchTables, KnowEverySetOfASlotAndItsOther) {
  const Tables tables = of_first(job_of(3, 64, 8));
  EXPECT_EQ(tables.sources.size(), 3u * 8 * 2);
  for (const Tables::Source& s : tables.sources) {
    const auto set = static_cast<std::uint32_t>(s.index >> 15);
    const auto slot = static_cast<std::uint32_t>(s.index & 0x7fff);
    EXPECT_EQ(s.row, 2 * slot + set);
    EXPECT_EQ(s.other, 2 * slot + 1 - set);
  }
}

TEST(SwitchTables, KnowPacketsOfOneWorkerAloneWhereAJobHasThem) {
  JobPlan job = job_of(3, 64, 8);
  job.all_functions = true;
  const Tables tables = tables_of(job, Allocation(64, 1024, true).admit(job));
  std::map<std::uint32_t, int> alone, everyone;  // by row
  for (const Tables::Source& s : tables.sources)
    ++((s.index & kAloneIndex) != 0 ? alone : everyone)[s.row];
  EXPECT_EQ(alone.size(), 16u);
  EXPECT_EQ(alone, everyone);
}

// Receivers find their part of a result by their numbers.
TEST(SwitchTables, NumberReceiversLikeWorkersInEveryGroup) {
  const Tables tables = of_first(job_of(3, 64, 8));
  const auto& all = group_of(tables, counted_in(tables, kBroadcasts)).receivers;
  for (int w = 0; w < 3; ++w) EXPECT_EQ(all[static_cast<std::size_t>(w)].number, w);
  for (const Tables::Source& s : tables.sources)
    EXPECT_EQ(group_of(tables, s.again).receivers[0].number, s.worker);
}

TEST(SwitchTables, NumberTheWorkersOfALeafOnAndOnAndTellLeavesFromWorkers) {
  const auto numbers = [](const JobPlan& job, int counter) {
    const Tables tables = of_first(job);
    std::vector<int> all;
    for (const Receiver& r : group_of(tables, counted_in(tables, counter)).receivers)
      all.push_back(r.number);
    return all;
  };
  JobPlan spine = job_of(3, 64, 8), leaf = job_of(2, 64, 8);
  spine.workers[0].workers = spine.workers[2].workers = 4;
  EXPECT_EQ(numbers(spine, kBroadcasts), (std::vector<int>{kSeveral, 4, kSeveral + 2}));
  leaf.first_worker = 5;
  leaf.uplink = Uplink{2, {}, 0};
  EXPECT_EQ(numbers(leaf, kFromAbove), (std::vector<int>{5, 6}));
  EXPECT_EQ(numbers(leaf, kBroadcasts), (std::vector<int>{kAbove}));
}

TEST(SwitchTables, OfALeafLeadUpAndComeDown) {
  JobPlan leaf = job_of(2, 64, 8);
  leaf.guarded = true;
  leaf.uplink = Uplink{2, {2, 2, 2, 2, 2, 2}, 0x0a0000f0};
  const Tables tables = of_first(leaf);
  EXPECT_EQ(group_of(tables, counted_in(tables, kFromAbove)).receivers.size(), 2u);
  const Tables::Group& up = group_of(tables, counted_in(tables, kBroadcasts));
  ASSERT_EQ(up.receivers.size(), 1u);
  EXPECT_EQ(up.receivers[0].port, 2);
  EXPECT_EQ(up.receivers[0].udp, kUdpPort);
  int from_above = 0;
  for (const Tables::Source& s : tables.sources) {
    EXPECT_EQ(s.other, kGuarded);
    if (s.upper) {
      EXPECT_EQ(s.port, 2);
      EXPECT_LT(s.row, 16u);
      ++from_above;
    } else {
      const Tables::Group& own = group_of(tables, s.again - kOfLeaf);
      ASSERT_EQ(own.receivers.size(), 1u);
      EXPECT_EQ(own.receivers[0].ip, s.ip);
    }
  }
  EXPECT_EQ(from_above, 16);
}

TEST(SwitchTables, OfTwoJobsShareNoGroup) {
  JobPlan a = job_of(3, 64, 8), b = job_of(2, 64, 8), leaf = job_of(2, 64, 8);
  b.name = "b";
  leaf.name = "leaf";
  leaf.uplink = Uplink{2, {2, 2, 2, 2, 2, 2}, 0x0a0000f0};
  Allocation program(64, 1024);
  std::map<std::uint32_t, int> uses;
  for (const JobPlan& job : {a, leaf, b}) {
    for (const Tables::Group& group : tables_of(job, program.admit(job)).groups)
      ++uses[group.number];
  }
  EXPECT_EQ(uses.size(), 4u + 4 + 3);
  EXPECT_LT(uses.rbegin()->first, 65535u);
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
  const JobResources second = program.admit(b);
  const JobResources third = program.admit(c);
  EXPECT_EQ(second.first_slot, 8);
  EXPECT_EQ(second.first_group, 4);
  EXPECT_EQ(third.job, 2);
  EXPECT_THROW(program.admit(d), std::invalid_argument);
  program.remove("b");
  const JobResources again = program.admit(d);
  EXPECT_EQ(again.first_slot, 8);
  EXPECT_EQ(again.first_group, 4);
  EXPECT_EQ(again.job, 1);
}

TEST(Allocation, RefusesWhatTheProgramCannotHold) {
  const auto refused = [](const JobPlan& job, int slots) {
    EXPECT_THROW(Allocation(64, slots).admit(job), std::invalid_argument);
  };
  refused(job_of(2, 32), 1024);
  refused(job_of(2, 64, 2000), 1024);
  refused(job_of(32, 64, 4096), 16384);
  JobPlan all = job_of(2, 64);
  all.all_functions = true;
  refused(all, 1024);  // the program may not be ours
  all = job_of(32, 64, 1025);
  EXPECT_NO_THROW(Allocation(64, 16384, true).admit(all));
  all.all_functions = true;  // packets of the other types have sources of their own
  EXPECT_THROW(Allocation(64, 16384, true).admit(all), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank::switchml
