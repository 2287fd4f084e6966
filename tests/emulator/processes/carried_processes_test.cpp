// Streams that outlive their iteration, as two processes over libfabric: real data, and the same
// ledger as in virtual time.
#include <gtest/gtest.h>

#include "tests/emulator/processes/processes.h"
#include "tests/emulator/shard/carried_job.h"

namespace ghostrank {
namespace {

using testing::carried_job;
using testing::ledger_text;
using testing::SmallJob;

SmallJob job_on(FabricKind kind, bool waits) {
  testing::CarriedStep step{50 * kPicosPerMicro, 50 * kPicosPerMicro, 100'003};
  step.waits = waits;
  SmallJob job = carried_job(kind, step);
  job.spec.run.verify = true;
  job.spec.run.warmup = 1;
  job.spec.run.iterations = 10;
  job.spec.collectives.slice_bytes = 16 << 10;
  job.spec.collectives.credits = 3;
  return job;
}

TEST(CarriedOverLibfabric, RealDataIsReducedRightAndTheLedgerIsTheSame) {
  for (const bool waits : {false, true}) {
    const std::string expected = ledger_text(job_on(FabricKind::virtual_time, waits).run());
    for (const int shards : {1, 2}) {
      SmallJob job = job_on(FabricKind::ofi, waits);
      job.spec.run.shards = shards;
      const auto outcomes = testing::run_processes(2, [&](const World& world) {
        const auto control = Control::meet(world);
        const Result result = job.run(*control);
        EXPECT_EQ(result.interrupted, "");
        if (world.rank == 0) {
          EXPECT_EQ(result.iterations.size(), 10u);
          EXPECT_EQ(result.verify->wrong_elements, 0u);
          EXPECT_EQ(result.verify->checked_elements, 10u * 4u * 100'003u);
        }
        control->close();
        return ledger_text(result);
      });
      testing::expect_all_ok(outcomes);
      EXPECT_EQ(outcomes[0].said, expected);
    }
  }
}

}  // namespace
}  // namespace ghostrank
