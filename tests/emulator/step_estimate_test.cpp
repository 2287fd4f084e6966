// Estimated steps beside the engine's in virtual time.
#include "emulator/estimate/step_estimate.h"

#include <string>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/emulator/support.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

double played(const LoadedJob& job, const Workload& workload) {
  return testing::play(job, workload).iterations.back().seconds;
}

std::string megatron_job(const std::string& parallel, int nodes) {
  return "schema: ghostrank/job/1\nmodel: gpt2-medium\ndevice: h100-sxm\n"
         "precision: {parameters: bf16, gradients: fp32, optimizer: adam}\n"
         "cluster: {nodes: " +
         std::to_string(nodes) +
         ", gpus_per_node: 8, nics_per_node: 8, nic: {rate: 200Gbps, latency_us: 2}, "
         "intra_node: {rate: 2400Gbps, latency_us: 1}}\n"
         "collectives: {library: nccl-2.28}\n"
         "fabric: {kind: virtual, inside_node: model}\nrun: {warmup: 0, iterations: 1}\n"
         "parallel: {framework: megatron, distributed_optimizer: true, " +
         parallel + "}\n";
}

TEST(StepEstimate, IsNearTheStepOfTheEngine) {
  struct Case {
    int nodes;
    const char* parallel;
  };
  for (const Case& c :
       {Case{1, "tp: 4, pp: 2, global_batch: 8, sequence_parallel: true"},
        Case{2, "tp: 2, pp: 4, global_batch: 32"}, Case{2, "tp: 1, pp: 1, global_batch: 32"},
        Case{2, "tp: 4, pp: 4, global_batch: 16, schedule: interleaved, interleave: 3"},
        Case{4, "tp: 1, pp: 8, global_batch: 64, micro_batch: 2, recompute: full"},
        Case{2, "tp: 8, pp: 2, global_batch: 16, schedule: zb-h1, sequence_parallel: true"},
        Case{2, "tp: 2, pp: 2, cp: 2, global_batch: 8"}}) {
    SCOPED_TRACE(c.parallel);
    const LoadedJob job = test::load_text(megatron_job(c.parallel, c.nodes));
    const Workload workload = plan_workload(job.spec);
    StepEstimator estimator;
    const double estimate =
        static_cast<double>(estimator.estimate(job.spec, workload).step) * 1e-12;
    const double engine = played(job, workload);
    EXPECT_NEAR(estimate / engine, 1, 0.005);
  }
}

// Each of the two streams makes one of the communicator's calls, and the other rank makes both.
TEST(StepEstimate, CallsOfTwoStreamsInOneCommunicatorAreTwo) {
  testing::SmallJob job(2, 1, FabricKind::virtual_time);
  Op compute;
  compute.duration = 100 * kPicosPerMilli;
  const Op call{.kind = Op::Kind::collective, .func = Func::all_reduce, .count = 1000};
  job.workload.roles[0].iterations[0] = Program{{"a", "b"}, {{call}, {call}}, {"op"}, 0};
  job.workload.roles.push_back(
      {"late", {Program{{"compute"}, {{compute, call, call}}, {"op"}, 0}}});
  job.workload.role_of[WorldRank(1)] = 1;
  const double engine = job.run().iterations.at(0).seconds;
  const double estimate = seconds(StepEstimator().estimate(job.spec, job.workload).step);
  EXPECT_GT(estimate, 0.1);
  EXPECT_NEAR(estimate, engine, 1e-9 * engine);
}

}  // namespace
}  // namespace ghostrank
