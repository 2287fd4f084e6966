// Random small jobs with real data, as several processes over libfabric on loopback, at paces that
// this machine keeps and at some that it does not. The sums are right, and the ledger equals that
// of virtual time, unless a switch sums. See asked_jobs() for how many.
#include <random>

#include <gtest/gtest.h>

#include "tests/emulator/jobs/random_job.h"
#include "tests/emulator/processes/processes.h"

namespace ghostrank {
namespace {

using testing::RandomJob;
using testing::SmallJob;

void play(unsigned seed, const RandomJob& random) {
  SCOPED_TRACE("job " + std::to_string(seed) + ": " + testing::name_of(random));
  const auto outcomes = testing::run_processes(
      random.processes,
      [&](const World& world) {
        const auto control = Control::meet(world);
        const Result result = random.job.run(*control);
        EXPECT_EQ(result.interrupted, "");
        if (world.rank == 0) {
          EXPECT_GT(result.verify->checked_elements, 0u);
          EXPECT_EQ(result.verify->wrong_elements, 0u);
        }
        control->close();
        return testing::ledger_text(result);
      },
      std::chrono::seconds(60));
  testing::expect_all_ok(outcomes);
  SmallJob same = random.job;
  same.spec.fabric.kind = FabricKind::virtual_time;
  same.spec.dilation = 0;
  std::mt19937 draw(seed);
  same.spec.cluster.nic_rates = nullptr;
  if (draw() % 2 == 0) testing::add_rates(draw, same.spec.cluster, 20);
  const Result modelled = same.run();
  EXPECT_EQ(modelled.interrupted, "");
  EXPECT_EQ(modelled.verify->wrong_elements, 0u);
  // Over libfabric a server plays the switch, on a node of the job.
  if (!testing::sums_in_switch(same.spec)) {
    EXPECT_EQ(outcomes[0].said, testing::ledger_text(modelled));
  }
}

TEST(RandomJobs, ReduceRealDataRightAndSendWhatVirtualTimeSends) {
  const auto [first, end] = testing::asked_jobs(12);
  ASSERT_GT(end, first);
  for (unsigned seed = first; seed < end && !HasFailure(); ++seed)  // one is enough to look into
    play(seed, testing::random_job(seed));
}

TEST(RandomJobs, OfSwitchesThatHaveServersOrSkipZerosReduceRealDataRight) {
  const auto [first, end] = testing::asked_jobs(2);
  for (unsigned seed = first; seed < end && !HasFailure(); ++seed)
    for (const char* scheme : {"atp", "omnireduce_switch"})
      play(seed, testing::random_job(seed, scheme));
}

}  // namespace
}  // namespace ghostrank
