// Slices as two processes over libfabric: they send each other what the whole job sends between
// their nodes, whatever has a flow of its own.
#include <gtest/gtest.h>

#include "tests/emulator/processes/processes.h"
#include "tests/emulator/shard/slice_traffic.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;
using testing::text_of;
using testing::traffic_of;

SmallJob job_on(FabricKind kind) {
  SmallJob job(5, 2, kind);
  job.compute(100 * kPicosPerMicro).collective(Func::all_reduce, 100'000);
  job.collective(Func::all_to_all, 20'000);
  job.spec.collectives.slice_bytes = 16 << 10;
  job.spec.collectives.credits = 3;
  job.spec.run.warmup = 1;
  job.spec.run.iterations = 4;
  return job;
}

TEST(SlicesOverLibfabric, SendWhatTheWholeJobSendsBetweenTheirNodes) {
  const Result whole = job_on(FabricKind::virtual_time).run();
  const std::vector<Node> nodes{Node(0), Node(2), Node(3)};  // 1 and 4 are between them in rings
  const std::string expected = text_of(traffic_of(whole, nodes, 2));
  for (const FlowKind flows : {FlowKind::process, FlowKind::nic, FlowKind::connection}) {
    SmallJob job = job_on(FabricKind::ofi);
    job.spec.slice = nodes;
    job.spec.fabric.flows = flows;
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      const auto control = Control::meet(world);
      const Result result = job.run(*control);
      EXPECT_EQ(result.interrupted, "");
      if (world.rank == 0) {
        EXPECT_EQ(result.iterations.size(), 4u);
        EXPECT_EQ(result.hosts.size(), 2u);
      }
      control->close();
      return world.rank == 0 ? text_of(traffic_of(result)) : "";
    });
    testing::expect_all_ok(outcomes);
    EXPECT_EQ(outcomes[0].said, expected);
  }
}

}  // namespace
}  // namespace ghostrank
