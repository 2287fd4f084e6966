// Programs whose micro-batches are repeated play as those that list them, to the last bit:
// pipelines of random shapes, schedules and networks in virtual time.
#include <random>

#include <gtest/gtest.h>

#include "profiles/planners/pipeline/repeated_program.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::one_of;
using testing::SmallJob;

// The same but for the number of micro-batches.
struct PipelineJob {
  std::string schedule, text;
  int stages = 2, replicas = 2, period = 1;

  JobSpec spec(int micro_batches) const {
    return test::load_text(text + ", global_batch: " + std::to_string(micro_batches * replicas) +
                           "}\n")
        .spec;
  }
};

PipelineJob random_pipeline(std::mt19937& random) {
  PipelineJob job;
  const std::string framework = one_of<const char*>(random, {"megatron", "torchtitan"});
  job.schedule = framework == "megatron"
                     ? one_of<const char*>(
                           random, {"1f1b", "interleaved", "zb-h1", "zbv", "dualpipe", "dualpipev"})
                     : one_of<const char*>(random, {"1f1b", "interleaved", "zbv", "dualpipev"});
  job.stages = one_of(random, {2, 4});
  if (job.schedule == "interleaved") job.period = job.stages;
  if (job.schedule == "dualpipe") job.period = 2;
  const bool experts = random() % 3 == 0;
  const std::string rate = one_of<const char*>(random, {"10Gbps", "400Gbps"});
  job.text = std::string("model: {base: ") + (experts ? "mixtral-8x7b" : "llama3-8b") +
             ", layers: 16}\n"
             "device: {base: h100-sxm, memory_bytes: 0}\n"
             "precision: {parameters: bf16, gradients: fp32}\n"
             "cluster: {nodes: " +
             std::to_string(job.stages * job.replicas / 2) +
             ", gpus_per_node: 2, nics_per_node: 2, nic: {rate: " + rate +
             "}}\n"
             "fabric: {kind: virtual}\n"
             "run: {iterations: 2, jitter: " +
             one_of<const char*>(random, {"0", "0.1"}) +
             "}\n"
             "parallel: {framework: " +
             framework + ", pp: " + std::to_string(job.stages) + ", schedule: " + job.schedule +
             (job.schedule == "interleaved" ? ", interleave: 2" : "") + (experts ? ", ep: 2" : "");
  return job;
}

// The workload of `job` for so many micro-batches, made of those of three short pipelines.
Workload repeated(const PipelineJob& job, int micro_batches) {
  const int first = kRounds * job.stages;
  const auto plan = [&](int periods) {
    return plan_workload(job.spec(first + periods * job.period));
  };
  const Workload one = plan(0), two = plan(1), three = plan(2);
  Workload out = plan_workload(job.spec(micro_batches));
  for (std::size_t role = 0; role < out.roles.size(); ++role)
    out.roles[role].iterations = {
        prolonged(one.roles[role].iterations[0], two.roles[role].iterations[0],
                  three.roles[role].iterations[0],
                  static_cast<std::uint64_t>((micro_batches - first) / job.period))
            .value()};
  return out;
}

Result played(const JobSpec& spec, Workload workload) {
  SmallJob job(1, 1, FabricKind::virtual_time);
  job.spec = spec;
  job.workload = std::move(workload);
  return job.run();
}

TEST(RepeatedRuns, OfRandomPipelinesAreThoseOfTheListedPrograms) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const PipelineJob job = random_pipeline(random);
    SCOPED_TRACE("job " + std::to_string(seed) + ": " + job.text);
    const int micro_batches = kRounds * job.stages + one_of(random, {3, 5}) * job.period;
    const JobSpec spec = job.spec(micro_batches);
    const Workload listed = plan_workload(spec), other = repeated(job, micro_batches);
    ASSERT_EQ(listed.roles[0].iterations[0].streams[0].body().size, 0u);
    ASSERT_GT(other.roles[0].iterations[0].streams[0].body().size, 0u);
    const Result a = played(spec, listed), b = played(spec, other);
    ASSERT_EQ(a.interrupted + b.interrupted, "");
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(a.iterations.at(i).seconds, b.iterations.at(i).seconds);
      EXPECT_EQ(a.iterations[i].bubble_seconds, b.iterations[i].bubble_seconds);
      EXPECT_EQ(a.iterations[i].exposed_comm_seconds, b.iterations[i].exposed_comm_seconds);
    }
    EXPECT_GT(a.messages_per_iteration, 0);
    EXPECT_EQ(testing::ledger_text(a), testing::ledger_text(b));
  }
}

}  // namespace
}  // namespace ghostrank
