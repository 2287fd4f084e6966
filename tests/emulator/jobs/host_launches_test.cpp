// Steps of a host that launches kernels slowly, in virtual time.
#include <string>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

// Four layers whose kernels take a microsecond or two each; two micro-batches on two GPUs.
std::string small_job(const std::string& host_us, const std::string& hop_us,
                      const std::string& more) {
  return "schema: ghostrank/job/1\nmodel: {kind: transformer, name: small, architecture: gpt2, "
         "layers: 4, hidden: 256, heads: 8, ffn: 1024, sequence: 64, vocabulary: 512}\n"
         "device: {base: a100-sxm-80gb, kernels: {launch_us: 0, host_us: " +
         host_us +
         "}}\nprecision: {parameters: bf16, gradients: bf16}\n"
         "cluster: {nodes: 1, gpus_per_node: 2, nics_per_node: 1, "
         "intra_node: {rate: 2000Gbps, latency_us: " +
         hop_us + "}}\nparallel: {framework: megatron, attention: unfused, global_batch: 2, " +
         more +
         "}\ncollectives: {library: nccl-2.30}\nfabric: {kind: virtual}\n"
         "run: {warmup: 0, iterations: 1}\n";
}

double step_seconds(const std::string& text) {
  const LoadedJob job = test::load_text(text);
  return testing::play(job, plan_workload(job.spec)).iterations.back().seconds;
}

TEST(HostLaunches, SetThePaceOfShortKernels) {
  const auto at = [](const char* host_us) {
    return step_seconds(small_job(host_us, "0", "tp: 2"));
  };
  const double none = at("0"), some = at("50"), twice = at("100");
  EXPECT_GT(some, 10 * none);
  EXPECT_NEAR((twice - none) / (some - none), 2, .02);
}

TEST(HostLaunches, RunAheadOfCallsUnlessTheHostWaitsForThem) {
  const std::string waiting = "tp: 2, blocking_wait: true";
  const double launches = step_seconds(small_job("50", "0", "tp: 2")),
               calls = step_seconds(small_job("0", "100", "tp: 2")),
               ahead = step_seconds(small_job("50", "100", "tp: 2")),
               held = step_seconds(small_job("50", "100", waiting));
  EXPECT_LT(ahead, .9 * (launches + calls));
  EXPECT_GT(held, 1.05 * ahead);
  // A waiting host launches nothing while a call goes on, but the call itself.
  EXPECT_LE(held, launches + calls);
  EXPECT_EQ(step_seconds(small_job("0", "100", waiting)), calls);
}

// The host launches an expert's kernels whether they have many rows or few.
TEST(HostLaunches, AreThoseOfExpertsHoweverRowsAreSpread) {
  const auto step = [](const std::string& routing) {
    std::string text = small_job("50", "0", "ep: 2" + routing);
    const auto put = [&](const std::string& at, const std::string& by) {
      text.replace(text.find(at), at.size(), by);
    };
    put("architecture: gpt2", "architecture: llama, norm: rmsnorm, position_embeddings: rope");
    put("ffn: 1024, ", "ffn: 1024, experts: {count: 4, top_k: 2, ffn: 1024}, ");
    return step_seconds(text);
  };
  const double even = step("");
  EXPECT_EQ(step(", expert_load: [1, 1, 1, 1]"), even);
  EXPECT_GE(step(", expert_load: [1, 1, 1, 1.2]"), even);
  EXPECT_GE(step(", expert_imbalance: 0.3"), even);
}

}  // namespace
}  // namespace ghostrank
