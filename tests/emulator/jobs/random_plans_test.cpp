// Random plans of Megatron, TorchTitan, FSDP, ZeRO and TorchRec, over odd numbers of GPUs and NICs:
// what they send is what was planned, no step is shorter than its bound, shards change nothing, and
// on a cluster that is half as fast in everything a step takes twice as long.
#include <algorithm>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using test::one_of;
using Words = std::vector<const char*>;

std::string any(std::mt19937& random, const Words& words) { return words[random() % words.size()]; }

std::string parallel_of(std::mt19937& random, int gpus) {
  const std::string framework =
      any(random, {"megatron", "megatron", "torchtitan", "fsdp", "zero1", "zero3", "torchrec"});
  std::string text = "parallel: {framework: " + framework;
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) text += ", " + key + ": " + value;
  };
  if (framework == "fsdp") {
    add("dp_replicate", any(random, {"1", "2", "3"}));
    add("reshard_after_forward", any(random, {"", "never"}));
    add("prefetch", any(random, {"0", "1"}));
  } else if (framework == "torchrec") {
    add("row_wise_above", any(random, {"0", "5000"}));
  } else if (framework.starts_with("zero")) {
    add("bucket_size", any(random, {"", "100000"}));
    add("overlap_comm", any(random, {"", "true"}));
  } else {
    const int tp = one_of(random, {1, 2, 3}), pp = one_of(random, {1, 2, 2, 3}),
              cp = one_of(random, {1, 1, 2});
    add("tp", std::to_string(tp));
    add("pp", std::to_string(pp));
    add("cp", std::to_string(cp));
    add("ep", any(random, {"1", "1", "2"}));
    if (tp > 1 && framework == "megatron") add("sequence_parallel", "true");
    if (framework == "megatron") add("distributed_optimizer", any(random, {"true", "false"}));
    if (framework == "torchtitan") add("dp_replicate", any(random, {"1", "2"}));
    if (pp > 1)
      add("schedule", any(random, {"1f1b", "interleaved, interleave: 2", "zbv", "dualpipev"}));
    const int replicas = std::max(1, gpus / (tp * pp * (framework == "megatron" ? cp : 1)));
    add("recompute", any(random, {"", "full"}));
    add("global_batch", std::to_string(replicas * pp * one_of(random, {1, 2, 3})));
    if (tp > 1 && framework == "megatron") add("tp_comm_overlap", any(random, {"", "true"}));
  }
  return text + "}\n";
}

// Megatron's linear layers multiply in fp8 in two of three jobs. Drawn apart from the rest.
std::string precision_of(unsigned seed, const std::string& parallel) {
  std::mt19937 random(seed + 1000);
  if (parallel.find("megatron") == std::string::npos) return "bf16";
  return any(random, {"bf16", "bf16", "fp8", "fp8, tp_only_amax_red: true",
                      "fp8, fp8_recipe: tensorwise", "fp8"});
}

// The job of a number, on a cluster and GPUs that are so many times as slow. A byte and an
// operation take whole picoseconds.
std::string random_plan(unsigned seed, int slower) {
  std::mt19937 random(seed);
  const auto gbps = [&](int rate) { return std::to_string(rate / slower) + "Gbps"; };
  const auto us = [&](double latency) { return std::to_string(latency * slower); };
  const int nodes = one_of(random, {1, 2, 2, 3, 4}), gpus = one_of(random, {1, 2, 3, 4, 6});
  const std::string parallel = parallel_of(random, nodes * gpus);
  const bool tables = parallel.find("torchrec") != std::string::npos;
  const bool experts = parallel.find("ep: 2") != std::string::npos;
  std::string text = "schema: ghostrank/job/1\n" + parallel;
  text += tables
              ? "model: {kind: recommendation, dense_features: 13, embedding_width: 16, tables: "
                "[100, 20000, 7000], bottom: [64, 16], top: [64, 1]}\n"
              : "model: {kind: transformer, architecture: llama, norm: rmsnorm, layers: 6, "
                "hidden: 192, heads: 12, ffn: 384, gated_ffn: true, bias: false, sequence: 48, "
                "vocabulary: 1536, tied_embeddings: false, position_embeddings: rope" +
                    std::string(experts ? ", experts: {count: 4, top_k: 2, ffn: 96}" : "") + "}\n";
  text += "device: {peak_tflops: {bf16: " + std::to_string(1.0 / slower) +
          ", fp8: " + std::to_string(2.0 / slower) +
          "}, efficiency: 1, memory_GBps: " + std::to_string(1000 / slower) +
          "}\nprecision: {parameters: " + precision_of(seed, parallel) + "}\n";
  text += "cluster: {nodes: " + std::to_string(nodes) + ", gpus_per_node: " + std::to_string(gpus) +
          ", nics_per_node: " + std::to_string(one_of(random, {1, gpus, 2 * gpus, 3})) +
          ", nic: {rate: " + gbps(one_of(random, {10, 100})) +
          ", latency_us: " + us(one_of(random, {0.0, 2.0})) +
          "}, intra_node: {rate: " + gbps(one_of(random, {100, 1000})) +
          ", latency_us: " + us(one_of(random, {0.0, 1.0})) + "}" +
          any(random, {"", "", ", topology: {kind: leaf_spine, leaves: 2, oversubscription: 2}",
                       ", topology: {kind: rail_optimised, spines: 3, routing: static}"}) +
          "}\n";
  text += "collectives: {library: generic" + any(random, {"", ", slice: 16KiB", ", slice: 4KiB"}) +
          "}\nfabric: {kind: virtual, inside_node: " + any(random, {"model", "messages"}) + "}\n";
  return text + "run: {warmup: 1, iterations: 2}\n";
}

// Empty: the job cannot have the plan, which most numbers avoid.
std::optional<LoadedJob> loaded(const std::string& text) {
  try {
    LoadedJob job = test::load_text(text);
    plan_workload(job.spec);
    return job;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The job on one node with another plan: tensor-parallel calls overlap products.
std::string overlapped(unsigned seed, std::string text) {
  std::mt19937 random(seed);
  const int tp = one_of(random, {2, 3, 4, 6}), replicas = one_of(random, {1, 2});
  const std::string parallel =
      "parallel: {framework: megatron, tp: " + std::to_string(tp) +
      ", sequence_parallel: true, tp_comm_overlap: true, distributed_optimizer: " +
      any(random, {"true", "false"}) + ", recompute: " + any(random, {"none", "full"}) +
      ", global_batch: " + std::to_string(replicas * one_of(random, {1, 3})) + "}";
  const std::string gpus = "nodes: 1, gpus_per_node: " + std::to_string(tp * replicas);
  for (const auto& [pattern, by] :
       {std::pair("parallel: .*", parallel), std::pair("nodes: ., gpus_per_node: .", gpus),
        std::pair(", experts: [^}]*\\}", std::string())})
    text = std::regex_replace(text, std::regex(pattern), by);
  return text;
}

// Transfers inside a node are played message by message or, as flows, where they have their ports
// for themselves, without messages.
TEST(RandomPlans, TakeAsLongOnOneNodeAsFlows) {
  const auto jobs = static_cast<unsigned>(test::number_in("GHOSTRANK_RANDOM_JOBS", 100));
  unsigned with_lone_ports = 0;
  for (unsigned seed = 0; seed < jobs; ++seed) {
    const std::string text = random_plan(seed, 1);
    std::optional<LoadedJob> job = loaded(seed % 3 > 0 ? text : overlapped(seed, text));
    if (!job) continue;
    const int nodes = std::exchange(job->spec.cluster.nodes, 1);
    job->spec.cluster.gpus_per_node *= nodes;
    job->spec.cluster.nics_per_node *= nodes;
    job->spec.cluster.topology = {};
    job->spec.fabric.inside_node = InsideNode::model;
    const Workload workload = plan_workload(job->spec);
    SCOPED_TRACE("job " + std::to_string(seed));
    with_lone_ports += testing::has_lone_ports(job->spec, workload);
    const Result messages = testing::play(*job, workload);
    job->spec.fabric.network = NetworkModel::flow;
    ASSERT_EQ(testing::report_text(testing::play(*job, workload)), testing::report_text(messages));
  }
  if (jobs >= 100) {
    EXPECT_GE(with_lone_ports, 8U);
  }
}

TEST(RandomPlans, SendWhatWasPlannedAndKeepTheirBounds) {
  const auto jobs = static_cast<unsigned>(test::number_in("GHOSTRANK_RANDOM_JOBS", 50));
  unsigned played = 0;
  for (unsigned seed = 0; seed < jobs; ++seed) {
    const std::string text = random_plan(seed, 1);
    std::optional<LoadedJob> job = loaded(text);
    if (!job) continue;
    SCOPED_TRACE("job " + std::to_string(seed) + ": " + text);
    ++played;
    if (seed % 3 == 1) job->spec.fabric.queue_pairs = {2 + seed % 4, seed % 2 == 0};
    const TrafficPlan plan = plan_traffic(job->spec, plan_workload(job->spec));
    const Result result = testing::play(*job);
    ASSERT_EQ(result.interrupted, "");
    EXPECT_EQ(result.wire_bytes_per_iteration, static_cast<double>(plan.wire_bytes));
    EXPECT_EQ(result.messages_per_iteration, static_cast<double>(plan.wire_messages));
    // Ranks may begin a step before others have ended the one before: the bound is of the mean.
    EXPECT_GE(mean_seconds(result.iterations), plan.step_seconds_at_least * (1 - 1e-9));

    const Result slower = testing::play(test::load_text(random_plan(seed, 2)));
    const bool links = job->spec.cluster.topology.kind != TopologySpec::Kind::nonblocking;
    for (std::size_t i = 0; i < result.iterations.size() && !links; ++i)
      EXPECT_NEAR(slower.iterations.at(i).seconds / result.iterations[i].seconds, 2, 1e-6);

    job->spec.run.shards = 2;
    const Result shards = testing::play(*job);
    EXPECT_EQ(testing::ledger_text(shards), testing::ledger_text(result));
    for (std::size_t i = 0; i < result.iterations.size(); ++i)
      EXPECT_EQ(shards.iterations.at(i).seconds, result.iterations[i].seconds);
    if (HasFailure()) return;  // one failing job is enough to look into
  }
  EXPECT_GE(played, jobs / 2);
}

// A plan counts a tree of switches for every communicator; here most do not get one, and add up
// around a ring, which loads other links.
TEST(Plans, KeepTheirBoundsWhereTreesAreOnlyAssumed) {
  LoadedJob job = test::load_text(
      "schema: ghostrank/job/1\n"
      "parallel: {framework: megatron, pp: 2, dp: 8, global_batch: 8}\n"
      "model: {kind: transformer, layers: 2, hidden: 256, heads: 8, ffn: 1024, sequence: 128, "
      "vocabulary: 2048}\n"
      "device: {peak_tflops: {bf16: 1000}, efficiency: 1, memory_GBps: 3000}\n"
      "precision: {parameters: bf16}\n"
      "cluster: {nodes: 16, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 400Gbps, latency_us: "
      "1}, topology: {kind: leaf_spine, oversubscription: 4, leaves: 16, routing: static}}\n"
      "collectives: {library: generic, allreduce: sharp}\n"
      "fabric: {kind: virtual}\n"
      "run: {warmup: 1, iterations: 2}\n");
  const TrafficPlan plan = plan_traffic(job.spec, plan_workload(job.spec));
  EXPECT_GT(plan.step_seconds_at_least, 0);
  EXPECT_GE(mean_seconds(testing::play(job).iterations), plan.step_seconds_at_least * (1 - 1e-9));
}

// Bytes of fp8 are gathered, and largest elements reduced, as they are.
TEST(Fp8Plans, MoveRealDataRight) {
  for (const char* recipe : {"delayed", "tensorwise"})
    for (const char* more : {"", ", recompute: full", ", tp_comm_overlap: true"}) {
      const Result result = testing::play(test::load_text(
          "schema: ghostrank/job/1\nmodel: {kind: transformer, architecture: llama, norm: rmsnorm, "
          "layers: 2, hidden: 32, heads: 2, ffn: 64, gated_ffn: true, bias: false, sequence: 32, "
          "vocabulary: 64, tied_embeddings: false, position_embeddings: rope}\n"
          "device: {peak_tflops: {bf16: 1, fp8: 2}, efficiency: 1, memory_GBps: 1000}\n"
          "precision: {parameters: fp8, fp8_recipe: " +
          std::string(recipe) +
          "}\ncluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2}\n"
          "parallel: {framework: megatron, tp: 2, pp: 2, sequence_parallel: true, global_batch: 4, "
          "make_vocab_size_divisible_by: 1" +
          more +
          "}\nfabric: {kind: virtual, inside_node: messages}\n"
          "run: {warmup: 1, iterations: 2, verify: true}\n"));
      ASSERT_TRUE(result.verify);
      EXPECT_GT(result.verify->checked_elements, 0U);
      EXPECT_EQ(result.verify->wrong_elements, 0U) << recipe << more;
    }
}

}  // namespace
}  // namespace ghostrank
