// Estimated steps beside the engine's in virtual time.
#include "emulator/estimate/step_estimate.h"

#include <string>
#include <vector>

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

std::string job_of(const std::string& parallel, int nodes, int nics = 8) {
  return "schema: ghostrank/job/1\nmodel: gpt2-medium\ndevice: h100-sxm\n"
         "precision: {parameters: bf16, gradients: fp32, optimizer: adam}\n"
         "cluster: {nodes: " +
         std::to_string(nodes) + ", gpus_per_node: 8, nics_per_node: " + std::to_string(nics) +
         ", nic: {rate: 200Gbps, latency_us: 2}, "
         "intra_node: {rate: 2400Gbps, latency_us: 1}}\n"
         "collectives: {library: nccl-2.28}\n"
         "fabric: {kind: virtual, inside_node: model}\nrun: {warmup: 0, iterations: 1}\n"
         "parallel: {" +
         parallel + "}\n";
}

std::string megatron_job(const std::string& parallel, int nodes, int nics = 8) {
  return job_of("framework: megatron, distributed_optimizer: true, " + parallel, nodes, nics);
}

double estimated(const LoadedJob& job, const Workload& workload) {
  return seconds(StepEstimator().estimate(job.spec, workload).step);
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
    EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, 0.005);
  }
}

// Of 64 ranks, which are too many to be played, 8 are on each node: messages that follow one
// another pass an eighth of the NICs' bytes, beside the others.
TEST(StepEstimate, ARingOverNodesHidesLatenciesBehindItsBytes) {
  for (const char* bucket : {"1", "100"}) {
    LoadedJob job = test::load_text(
        job_of("framework: ddp, launch: after_backward, bucket_cap_mb: " + std::string(bucket), 8));
    job.spec.collectives.library = "generic";
    const Workload workload = plan_workload(job.spec);
    EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, 0.05) << bucket;
  }
}

// The groups of one kind on a node share its NICs: 8 of tp 8, 4 of tp 4, 8 that hold FSDP's models
// together. With 33 nodes they are too large to be played.
TEST(StepEstimate, GroupsThatShareNicsCallAtTheSameTime) {
  std::vector<std::string> cases{megatron_job("tp: 8, global_batch: 33, micro_batch: 1", 33, 1)};
  for (const int nics : {1, 2, 4}) {
    for (const char* tp : {"8", "4", "2"})
      cases.push_back(megatron_job("global_batch: 32, tp: " + std::string(tp), 2, nics));
    cases.push_back(job_of("framework: fsdp, micro_batch: 4, dp_replicate: 4", 4, nics));
  }
  for (const std::string& text : cases) {
    SCOPED_TRACE(text);
    const LoadedJob job = test::load_text(text);
    const Workload workload = in_steady_state(plan_workload(job.spec));
    EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, 0.02);
  }
}

// Calls of several kinds share NICs: those of each GPU's communicator, whose channels use the other
// GPU's NIC, too; both directions of a pipeline, whose replicas are on two nodes or on three;
// shards and several models.
TEST(StepEstimate, DifferentCallsShareNics) {
  const auto text = [](const std::string& model, const std::string& cluster,
                       const std::string& parallel) {
    return "schema: ghostrank/job/1\nmodel: {kind: transformer, architecture: llama, norm: "
           "rmsnorm, "
           "heads: 16, gated_ffn: true, bias: false, tied_embeddings: false, position_embeddings: "
           "rope, " +
           model + "}\ndevice: a100-sxm-80gb\nprecision: {parameters: bf16}\ncluster: {" + cluster +
           "}\ncollectives: {library: nccl-2.28}\nfabric: {kind: virtual, inside_node: model}\n"
           "run: {warmup: 0, iterations: 1}\nparallel: {" +
           parallel + "}\n";
  };
  for (const std::string& job_text :
       {text("layers: 4, hidden: 1024, ffn: 3072, sequence: 1024, vocabulary: 8192",
             "nodes: 3, gpus_per_node: 2, nics_per_node: 2, nic: {rate: 10Gbps, latency_us: 2}, "
             "intra_node: {rate: 2400Gbps, latency_us: 1}",
             "framework: megatron, tp: 2, sequence_parallel: true, distributed_optimizer: true, "
             "micro_batch: 2, global_batch: 24, recompute: full"),
        text("layers: 6, hidden: 2048, ffn: 6144, sequence: 512, vocabulary: 8192",
             "nodes: 4, gpus_per_node: 2, nics_per_node: 2, nic: {rate: 25Gbps, latency_us: 2}, "
             "intra_node: {rate: 200Gbps, latency_us: 1}",
             "framework: torchtitan, tp: 2, pp: 2, cp: 2, micro_batch: 1, global_batch: 2"),
        text("layers: 4, hidden: 1024, ffn: 3072, sequence: 512, vocabulary: 32000",
             "nodes: 4, gpus_per_node: 3, nics_per_node: 1, nic: {rate: 100Gbps, latency_us: 5}, "
             "intra_node: {rate: 200Gbps, latency_us: 1}",
             "framework: megatron, pp: 2, cp: 2, overlap_grad_reduce: true, micro_batch: 2, "
             "global_batch: 48, recompute: full"),
        text("layers: 6, hidden: 2048, ffn: 6144, sequence: 512, vocabulary: 8192",
             "nodes: 4, gpus_per_node: 8, nics_per_node: 8, nic: {rate: 5Gbps, latency_us: 2}, "
             "intra_node: {rate: 200Gbps, latency_us: 1}",
             "framework: torchtitan, pp: 2, dp_replicate: 4, micro_batch: 2, global_batch: 128, "
             "recompute: full")}) {
    SCOPED_TRACE(job_text);
    const LoadedJob job = test::load_text(job_text, {"device.memory_bytes=0"});
    const Workload workload = in_steady_state(plan_workload(job.spec));
    EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, 0.03);
  }
}

// Eight replicas pass two stages inside a node before they share its NIC: one after the other, or,
// as flows, evenly in every pass.
TEST(StepEstimate, ReplicasStayTogetherUntilTheyShareNics) {
  for (const char* network : {"loggp", "flow"}) {
    SCOPED_TRACE(network);
    const LoadedJob job = test::load_text(
        R"(schema: ghostrank/job/1
model: {kind: transformer, architecture: llama, norm: rmsnorm, layers: 16, hidden: 1024, heads: 16,
        ffn: 3072, gated_ffn: true, bias: false, sequence: 1024, vocabulary: 32000,
        tied_embeddings: false, position_embeddings: rope}
device: h100-sxm
precision: {parameters: bf16}
cluster: {nodes: 2, gpus_per_node: 16, nics_per_node: 1, nic: {rate: 10Gbps, latency_us: 5},
          intra_node: {rate: 2400Gbps, latency_us: 1}}
collectives: {library: nccl-2.28}
fabric: {kind: virtual}
run: {warmup: 0, iterations: 1}
parallel: {framework: megatron, pp: 4, micro_batch: 1, global_batch: 8}
)",
        {std::string("fabric.network=") + network});
    const Workload workload = in_steady_state(plan_workload(job.spec));
    EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, 0.03);
  }
}

// A receiver that comes late holds up its sender, which lacks credits for the whole transfer.
TEST(StepEstimate, SendersWaitForTheirReceivers) {
  struct Case {
    const char* framework;
    int nics;
    double within;
  };
  for (const char* network : {"loggp", "flow"})
    for (const Case& c :
         {Case{"torchtitan", 8, 0.015}, Case{"megatron", 8, 0.005}, Case{"megatron", 4, 0.05}}) {
      SCOPED_TRACE(std::string(network) + ", " + c.framework + ", " + std::to_string(c.nics));
      const LoadedJob job = test::load_text(
          job_of("framework: " + std::string(c.framework) +
                     ", tp: 4, pp: 2, schedule: interleaved, interleave: 2, micro_batch: 4, "
                     "global_batch: 32, sequence_parallel: " +
                     (c.framework == std::string("megatron") ? "true" : "false"),
                 2, c.nics),
          {std::string("fabric.network=") + network, "cluster.nic.rate=10Gbps",
           "model={base: llama2-7b, layers: 8, sequence: 1024}", "device.memory_bytes=0"});
      const Workload workload = in_steady_state(plan_workload(job.spec));
      EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, c.within);
    }
}

// Transfers of replicas go one after the other, and those of both directions, too.
TEST(StepEstimate, TransfersThatShareNicsAreNear) {
  for (const char* parallel :
       {"tp: 8, pp: 4", "tp: 4, pp: 4", "tp: 2, pp: 4", "tp: 1, pp: 8", "tp: 4, pp: 2"}) {
    SCOPED_TRACE(parallel);
    const LoadedJob job =
        test::load_text(megatron_job("global_batch: 32, " + std::string(parallel), 4, 1));
    const Workload workload = plan_workload(job.spec);
    const double share = estimated(job, workload) / played(job, workload);
    EXPECT_GT(share, 0.75);
    EXPECT_LT(share, 1.2);
  }
}

// Rings of context parallelism over two nodes: two of their hops leave a node, none of them rank
// 0's.
TEST(StepEstimate, RingsAreAsSlowAsTheirSlowestHop) {
  for (const char* parallel : {"cp: 16", "tp: 2, cp: 8", "cp: 16, cp_comm: a2a+p2p, cp_a2a: 2"}) {
    SCOPED_TRACE(parallel);
    const LoadedJob job = test::load_text(
        megatron_job("micro_batch: 8, global_batch: 8, " + std::string(parallel), 2));
    const Workload workload = plan_workload(job.spec);
    EXPECT_NEAR(estimated(job, workload) / played(job, workload), 1, 0.2);
  }
}

// Links with an eighth of the NICs' rate: all groups that make a call put their bytes on them, also
// groups on other nodes, and more members than an estimate plays.
TEST(StepEstimate, CallsTakeAsLongAsTheBusiestLink) {
  const std::vector<std::string> links{
      "cluster.topology={kind: leaf_spine, leaves: 2, spines: 2, oversubscription: 8}"};
  struct Case {
    std::string text;
    double within;
  };
  for (const Case& c : {Case{job_of("framework: ddp, micro_batch: 1", 2), 0.01},
                        Case{job_of("framework: zero3, micro_batch: 1", 2), 0.05},
                        Case{megatron_job("tp: 8, global_batch: 8", 4), 0.05},
                        Case{megatron_job("tp: 1, global_batch: 40", 5), 0.05},
                        Case{megatron_job("tp: 4, pp: 4, global_batch: 8", 2), 0.2}}) {
    SCOPED_TRACE(c.text);
    const LoadedJob job = test::load_text(c.text, links);
    const Workload workload = in_steady_state(plan_workload(job.spec));
    const double step = played(job, workload);
    const LoadedJob ideal = test::load_text(c.text);
    EXPECT_GT(step, 1.2 * estimated(ideal, workload));
    EXPECT_NEAR(estimated(job, workload) / step, 1, c.within);
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
