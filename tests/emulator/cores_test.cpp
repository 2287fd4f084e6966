// Cores of engine threads: the choice of cores, and that a run never widens the affinity mask of
// its process. Addresses of this machine.
#include "emulator/host/cores.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "emulator/host/host_facts.h"
#include "emulator/traffic/cluster.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"

namespace {

int made_up_cpus = 0;  // of a machine that a test makes up; 0: the real one

}  // namespace

// Shadows the C library's. As Linux does, it refuses a mask shorter than the machine's.
extern "C" int sched_getaffinity(pid_t pid, std::size_t bytes, cpu_set_t* mask) noexcept {
  auto got = static_cast<std::size_t>(made_up_cpus) / 8;
  if (made_up_cpus == 0) {
    const long real = syscall(SYS_sched_getaffinity, pid, bytes, mask);
    if (real < 0) return -1;
    got = static_cast<std::size_t>(real);
  } else if (got > bytes) {
    errno = EINVAL;
    return -1;
  } else {
    std::memset(mask, 0xff, got);
  }
  std::memset(reinterpret_cast<char*>(mask) + got, 0, bytes - got);
  return 0;
}

namespace ghostrank {
namespace {

using Cores = std::vector<int>;

// Two sockets of two cores with two CPUs each, numbered as Linux does: siblings are 4 apart. Device
// 0 is near the first socket, device 1 near the second.
std::vector<Cpu> two_sockets() {
  std::vector<Cpu> cpus;
  for (int n = 0; n < 8; ++n) {
    const bool first = n % 4 < 2;
    cpus.push_back({n, n % 4, n / 4, first ? 0 : 1, {first, !first}});
  }
  return cpus;
}

TEST(ChooseCpus, TakesTheCoresNearTheDeviceFirst) {
  std::vector<Cpu> cpus = two_sockets();
  EXPECT_EQ(choose_cpus(cpus, 2, 1), (Cores{0, 1}));
  for (Cpu& cpu : cpus) cpu.near[0] = cpu.near[1];
  EXPECT_EQ(choose_cpus(cpus, 2, 1), (Cores{2, 3}));
}

TEST(ChooseCpus, GivesEveryThreadACoreOfItsOwnBeforeSiblingsShareOne) {
  EXPECT_EQ(choose_cpus(two_sockets(), 4, 1), (Cores{0, 1, 2, 3}));
  EXPECT_EQ(choose_cpus(two_sockets(), 6, 1), (Cores{0, 1, 2, 3, 4, 5}));
}

TEST(ChooseCpus, DealsThreadsOutToSeveralDevices) {
  EXPECT_EQ(choose_cpus(two_sockets(), 4, 2), (Cores{0, 2, 1, 3}));
}

TEST(ChooseCpus, IsEmptyWhereThereAreTooFew) {
  EXPECT_TRUE(choose_cpus(two_sockets(), 9, 1).empty());
  EXPECT_EQ(choose_cpus(two_sockets(), 8, 0).size(), 8u);
}

TEST(Cores, AreThoseThatTheProcessWasStartedOn) {
  const Cores inherited = cpus_of_this_thread();
  ASSERT_FALSE(inherited.empty());
  EXPECT_EQ(usable_cpus("", "job.yaml"), inherited);
  EXPECT_EQ(usable_cpus(std::to_string(inherited.back()), "job.yaml"), Cores{inherited.back()});
  const Cores machine = cpus_of_machine();
  EXPECT_TRUE(std::includes(machine.begin(), machine.end(), inherited.begin(), inherited.end()));
}

TEST(Cores, BeyondThoseOfTheProcessAreRefused) {
  const Cores before = cpus_of_this_thread();
  if (before.size() < 2) GTEST_SKIP() << "one core";
  const StayOn first({before.front()});
  try {
    usable_cpus(number_list_text(before), "job.yaml:3:1: host s1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_EQ(std::string(error.what())
                  .find("job.yaml:3:1: host s1: cores is " + number_list_text(before) +
                        ", but the process may only run on " + std::to_string(before.front())),
              0u)
        << error.what();
  }
}

TEST(Cores, StayOnEndsWithItsScope) {
  const Cores before = cpus_of_this_thread();
  {
    const StayOn last({before.back()});
    EXPECT_EQ(cpus_of_this_thread(), Cores{before.back()});
  }
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST(Cores, OfAMachineWithThousandsAreCounted) {
  made_up_cpus = 4096;
  EXPECT_EQ(usable_cores(), 4096);
  EXPECT_EQ(cpus_of_this_thread().size(), 4096u);
  made_up_cpus = 0;
}

TEST(Shards, OfTheirOwnAccordTakeTheCoresOnlyInMemory) {
  JobSpec spec;
  spec.cluster.nodes = 8;
  spec.cluster.nic.latency = kPicosPerMicro;
  spec.run.shards = 0;  // auto
  spec.fabric.kind = FabricKind::memory;
  EXPECT_EQ(usable_shards(spec, 1), std::min(usable_cores(), 4));
  spec.hosts = {{.name = "s1", .cores = "0"}};
  EXPECT_EQ(usable_shards(spec, 1), 1) << "the host's entry names one core";
  spec.hosts.clear();
  spec.cluster.nodes = 1;
  EXPECT_EQ(usable_shards(spec, 1), 1);
  spec.cluster.nodes = 8;
  for (const FabricKind kind : {FabricKind::ofi, FabricKind::virtual_time}) {
    spec.fabric.kind = kind;
    EXPECT_EQ(usable_shards(spec, 2), 1);
  }
}

TEST(PlanCores, BindsOneThreadPerCoreWhereTheJobNamesCores) {
  const Cores inherited = cpus_of_this_thread();
  const CoreWish wish{number_list_text(inherited), {}, 1};
  const CorePlan plan = plan_cores(wish, inherited, 0, 1);
  ASSERT_EQ(plan.of_thread.size(), 1u);
  EXPECT_EQ(plan.of_thread[0].size(), 1u);
  EXPECT_EQ(plan.note, "");
}

TEST(PlanCores, GivesProcessesThatShareTheirCoresDifferentOnes) {
  const Cores inherited = cpus_of_this_thread();
  if (inherited.size() < 2) GTEST_SKIP() << "one core";
  const CoreWish wish{number_list_text(inherited), {}, 1};
  EXPECT_NE(plan_cores(wish, inherited, 0, 2).of_thread,
            plan_cores(wish, inherited, 1, 2).of_thread);
}

TEST(PlanCores, BindsNothingAndSaysSoWhereCoresAreTooFew) {
  const Cores inherited = cpus_of_this_thread();
  const auto threads = static_cast<int>(inherited.size()) + 1;
  const CoreWish wish{number_list_text(inherited), {}, threads};
  const CorePlan plan = plan_cores(wish, inherited, 0, threads);
  EXPECT_TRUE(plan.of_thread.empty());
  EXPECT_NE(plan.note.find(std::to_string(threads) + " engine threads share "), std::string::npos);
  EXPECT_NE(plan_cores(wish, inherited, 0, -1).note.find("other processes"), std::string::npos);
}

TEST(PlanCores, GivesEveryThreadACoreWhereTheyFillTheMachine) {
  const Cores machine = cpus_of_machine();
  if (machine != cpus_of_this_thread()) GTEST_SKIP() << "not started on the whole machine";
  if (machine.size() < 2) GTEST_SKIP() << "one core";
  const auto threads = static_cast<int>(machine.size());
  const CorePlan plan = plan_cores({"", {}, threads}, machine, 0, threads);
  std::set<int> used;
  for (const Cores& cpus : plan.of_thread) used.insert(cpus.begin(), cpus.end());
  EXPECT_EQ(used.size(), machine.size());
  EXPECT_TRUE(plan_cores({"", {}, threads + 1}, machine, 0, threads + 1).of_thread.empty());
}

TEST(PlanCores, LeavesAMachineWithRoomToTheKernel) {
  const Cores machine = cpus_of_machine();
  if (machine != cpus_of_this_thread()) GTEST_SKIP() << "not started on the whole machine";
  const CorePlan plan = plan_cores({"", {}, 1}, machine, 0, 1);
  EXPECT_TRUE(plan.of_thread.empty());
  EXPECT_EQ(plan.note, "");
}

TEST(HostFacts, LoopbackIsReachedFromLoopback) {
  EXPECT_EQ(local_address_towards("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace ghostrank
