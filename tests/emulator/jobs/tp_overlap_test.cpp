// Steps with tensor-parallel calls in parts between products, in virtual time.
#include <string>

#include <gtest/gtest.h>

#include "emulator/traffic/traffic.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

// Four layers 4,096 wide on eight GPUs, whose calls take a fifth of a step or so at 3 Tbit/s.
std::string wide_job(const std::string& rate, const std::string& more) {
  return "schema: ghostrank/job/1\nmodel: {kind: transformer, name: wide, architecture: gpt2, "
         "layers: 4, hidden: 4096, heads: 32, ffn: 16384, sequence: 4096, vocabulary: 512}\n"
         "device: h100-sxm\nprecision: {parameters: bf16, gradients: bf16}\n"
         "cluster: {nodes: 1, gpus_per_node: 8, nics_per_node: 1, "
         "intra_node: {rate: " +
         rate + ", latency_us: 3}}\nparallel: {framework: megatron, tp: 8, " + more +
         "}\ncollectives: {library: nccl-2.30}\nfabric: {kind: virtual}\n"
         "run: {warmup: 0, iterations: 1}\n";
}

struct PlayedStep {
  double seconds = 0, compute = 0, at_least = 0;
};

PlayedStep step(const std::string& rate, const std::string& more) {
  const LoadedJob job = test::load_text(wide_job(rate, more));
  const Workload workload = plan_workload(job.spec);
  const IterationReport played = testing::play(job, workload).iterations.back();
  return {played.seconds, played.compute_seconds,
          plan_traffic(job.spec, workload).step_seconds_at_least};
}

constexpr const char* kWhole = "sequence_parallel: true";
constexpr const char* kParts = "sequence_parallel: true, tp_comm_overlap: true";

// Most of the exposed calls go; what is left is never below the compute.
TEST(TpOverlap, HidesMostOfTheCalls) {
  const PlayedStep whole = step("3Tbps", kWhole), parts = step("3Tbps", kParts);
  EXPECT_LT(parts.seconds - parts.compute, .6 * (whole.seconds - whole.compute));
  EXPECT_GE(parts.seconds, parts.at_least);
  EXPECT_GE(parts.at_least, .95 * parts.compute);
  // The kernel that reduces slows a product's later parts.
  EXPECT_GT(parts.compute, whole.compute);
  EXPECT_LT(parts.compute, 1.05 * whole.compute);
}

// Calls that take far longer than products show whole, but for the products that they hide.
TEST(TpOverlap, HidesNoMoreThanTheProducts) {
  const PlayedStep whole = step("50Gbps", kWhole), parts = step("50Gbps", kParts);
  EXPECT_LT(parts.seconds, 1.02 * whole.seconds);
  EXPECT_GT(parts.seconds, whole.seconds - whole.compute);
}

TEST(AsyncAllReduce, HidesAProductOfTheWeights) {
  const PlayedStep beside = step("3Tbps", ""),
                   after = step("3Tbps", "async_tensor_model_parallel_allreduce: false");
  EXPECT_GT(after.seconds, 1.05 * beside.seconds);
  EXPECT_NEAR(after.compute, beside.compute, 1e-6 * beside.compute);
}

}  // namespace
}  // namespace ghostrank
