// Every framework refuses a model that does not fit the device and says what would fit.
#include "profiles/planners/memory_check.h"

#include <gtest/gtest.h>

#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

std::string error(const std::string& framework, const std::string& model, int nodes,
                  const std::string& more = "") {
  return test::load_error("model: " + model +
                          "\ndevice: h100-sxm\nprecision: {parameters: bf16}\n" +
                          "cluster: {nodes: " + std::to_string(nodes) +
                          ", gpus_per_node: 8}\nparallel: {framework: " + framework + more + "}\n");
}

const std::string kViews = ", gradient_as_bucket_view: true";

// A device has 80 GiB. Llama-3 8B has 8.03e9 parameters of 16 bytes each. It keeps 69,632 elements
// for each of 8,192 tokens in each of 32 layers, and logits: 41 GB.
TEST(Memory, OfWholeModelsHasNoNodesThatHelp) {
  for (const char* framework : {"ddp", "horovod", "dear", "wfbp", "mgwfbp", "bytescheduler"}) {
    const std::string more = framework == std::string("ddp") ? kViews : "";
    EXPECT_EQ(error(framework, "llama3-8b", 100, more),
              "job.yaml:1:8: a rank has at least 169 GB of weights, gradients, optimizer state and "
              "activations under " +
                  std::string(framework) +
                  " and the device h100-sxm has 86 GB; use parallel.framework=zero3 or fsdp, or a "
                  "device with more memory (device.memory_bytes=0: no check)");
    EXPECT_EQ(error(framework, "llama3.2-3b", 1, more), "");
  }
}

// Without views DDP's buckets are as large as all gradients (PyTorch's documentation of
// gradient_as_bucket_view). A single GPU has no DDP.
TEST(Memory, OfDdpHasGradientsAndBuckets) {
  const auto gradients = [](int gpus, const std::string& more) {
    const JobSpec spec = test::load_text(
                             "model: gpt2-xl\ndevice: h100-sxm\nprecision: {parameters: bf16}\n"
                             "cluster: {nodes: 1, gpus_per_node: " +
                             std::to_string(gpus) + "}\nparallel: {framework: ddp" + more + "}\n")
                             .spec;
    return gpu_memory(spec)->gradients / static_cast<double>(spec.model->parameters());
  };
  EXPECT_DOUBLE_EQ(gradients(8, ""), 8);
  EXPECT_DOUBLE_EQ(gradients(8, kViews), 4);
  EXPECT_DOUBLE_EQ(gradients(1, ""), 4);
  EXPECT_NE(error("ddp", "llama3.2-3b", 1).find("use parallel.gradient_as_bucket_view=true "),
            std::string::npos);
}

TEST(Memory, OfActivationsNamesTheMicroBatchThatFits) {
  EXPECT_NE(error("ddp", "llama3.2-3b", 1, kViews + ", micro_batch: 3")
                .find("use parallel.micro_batch=1 "),
            std::string::npos);
  for (const char* micro_batch : {"4", "1000000"})
    EXPECT_NE(error("fsdp", "llama3-8b", 1, std::string(", micro_batch: ") + micro_batch)
                  .find("use parallel.micro_batch=1 "),
              std::string::npos)
        << micro_batch;
  EXPECT_EQ(error("fsdp", "llama3-8b", 1), "");
}

// 70.55e9 x 16 B on 8 ranks, a unit of 1.05e9 x 2 B gathered, and 187 GB of activations, or 15 GB
// where layers are computed again.
TEST(Memory, OfShardedModelsNamesWhatFits) {
  const auto expect = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  const std::string again = ", recompute: full";
  expect(error("torchtitan", "llama3-70b", 1, again), "158 GB");
  expect(error("torchtitan", "llama3-70b", 1, again), "use cluster.nodes=3 or more");
  EXPECT_EQ(error("torchtitan", "llama3-70b", 3, again), "");
  expect(error("torchtitan", "llama3-70b", 2, again + ", dp_replicate: 2"),
         "use cluster.nodes=5 or more");
  expect(error("torchtitan", "llama3-70b", 4), "use parallel.recompute=full");
  expect(error("fsdp", "llama3-70b", 64), "use parallel.recompute=full");
  EXPECT_EQ(error("fsdp", "llama3-70b", 64, again), "");
  for (const char* framework : {"zero3", "zero1", "ddp"})
    expect(error(framework, "llama3-70b", 64),
           "use parallel.framework=fsdp with parallel.recompute=full");
  for (const char* framework : {"fsdp", "zero3", "ddp"})
    expect(error(framework, "llama3.1-405b", 1),
           "use parallel.framework=torchtitan with parallel.recompute=full and more "
           "tensor-parallel ranks, or a device with more memory (");
  // What the job has already is no advice, and neither is a framework that refuses the model.
  expect(error("torchtitan", "{base: llama3-70b, sequence: 131072}", 1, again),
         "has 86 GB; use more tensor-parallel ranks, or a device with more memory (");
  expect(error("fsdp", "{base: gpt3-175b, sequence: 65536}", 1, again),
         "has 86 GB; use parallel.framework=megatron with more tensor-parallel ranks, or a ");
}

// All weights of 70.55e9 x 2 B before the backward, where no unit is freed, do not fit any GPU.
TEST(Memory, OfUnitsThatAreKeptAfterTheForwardSaysToFreeThem) {
  for (const char* framework : {"fsdp", "torchtitan"}) {
    const std::string said =
        error(framework, "llama3-70b", 64, ", recompute: full, reshard_after_forward: never");
    EXPECT_NE(said.find("use parallel.reshard_after_forward=always "), std::string::npos) << said;
    EXPECT_EQ(
        error(framework, "llama3-70b", 64, ", recompute: full, reshard_after_forward: always"), "");
  }
}

// ResNet-50 keeps 21,075,968 elements and 1,605,632 bytes of a sample, and has 16 bytes for each of
// its 25.6e6 parameters; 11 GiB hold 132 samples. DeAR's authors trained with these batches on such
// cards.
TEST(Memory, OfConvolutionalNetworksCountsWhatTheyKeep) {
  const auto error = [](const std::string& model, int micro_batch) {
    return test::load_error("model: " + model +
                            "\ndevice: rtx2080ti\ncluster: {nodes: 2, gpus_per_node: 4}\n"
                            "parallel: {framework: dear, micro_batch: " +
                            std::to_string(micro_batch) + "}\n");
  };
  EXPECT_NE(error("resnet50", 160)
                .find("14 GB of weights, gradients, optimizer state and "
                      "activations under dear and the device rtx2080ti has 12 "
                      "GB; use parallel.micro_batch=132 "),
            std::string::npos)
      << error("resnet50", 160);
  EXPECT_EQ(error("resnet50", 132), "");
  EXPECT_EQ(error("resnet50", 64), "");
  EXPECT_EQ(error("densenet201", 32), "");
}

// The first of 1F1B's four stages keeps four micro-batches: 69,632 elements per token in each of
// its eight layers. It also holds gathered weights and sums of gradients of them and the embedding.
TEST(Memory, OfTorchTitansPipelinesCountsMicroBatchesUnderWay) {
  const auto memory = [](const std::string& more) {
    return *gpu_memory(
        test::load_text("model: llama3-8b\ndevice: h100-sxm\nprecision: {parameters: bf16}\n"
                        "cluster: {nodes: 8, gpus_per_node: 8}\nparallel: {framework: torchtitan, "
                        "pp: 4, global_batch: 128" +
                        more + "}\n")
            .spec);
  };
  const double tokens = 8192, layer = 218'112'000, embedding = 128'256 * 4096,
               parameters = embedding + 8 * layer;
  EXPECT_DOUBLE_EQ(memory("").activations, 4 * 8 * tokens * 69'632 * 2);
  EXPECT_DOUBLE_EQ(memory("").weights, parameters * (4 / 16. + 2 + 4));
  // A backward does not free what it used.
  EXPECT_DOUBLE_EQ(memory(", reshard_after_forward: always").weights, memory("").weights);
  // Recomputed, the last stage has more activations: inputs of 7 layers, of the norm and the head,
  // and logits. With micro-batches of two samples it is fuller than the first one.
  EXPECT_DOUBLE_EQ(memory(", recompute: full, micro_batch: 2").activations,
                   2 * tokens * (9 * 4096 * 2 + 4 * 128'256));
  EXPECT_DOUBLE_EQ(memory(", recompute: full, micro_batch: 2").weights,
                   (embedding + 7 * layer + 4096) * (4 / 16. + 2 + 4));
  // Micro-batches of three samples do not divide the batch, and those of two do not fit.
  EXPECT_NE(error("torchtitan", "llama3-8b", 8, ", pp: 4, micro_batch: 4, global_batch: 256")
                .find("use parallel.micro_batch=1 "),
            std::string::npos);
}

// A layer of Mixtral 8x22B: attention with a key width of 1024, router and norms, and eight experts
// of three matrices, which are gathered together unless ranks share them.
TEST(Memory, OfExpertsCountsALayerThatIsGatheredWhole) {
  const auto weights = [](const std::string& parallel) {
    return gpu_memory(test::load_text("model: mixtral-8x22b\n"
                                      "device: {base: h100-sxm, memory_bytes: 0}\n"
                                      "precision: {parameters: bf16}\n"
                                      "cluster: {nodes: 16, gpus_per_node: 8}\n"
                                      "parallel: {framework: " +
                                      parallel + "}\n")
                          .spec)
        ->weights;
  };
  const double h = 6144, experts = 8 * 3 * h * 16384, rest = 2 * h * h + 2 * h * 1024 + 10 * h,
               shards = 140620634112. / 128;
  for (const char* framework : {"fsdp", "torchtitan"})
    EXPECT_DOUBLE_EQ(weights(framework), 4 * shards + 2 * (rest + experts)) << framework;
  // ZeRO-3 fetches the first layer beside the embedding. Its norms and router are never sharded.
  EXPECT_DOUBLE_EQ(weights("zero3"), 2 * shards + 2 * (32000 * h + rest - 10 * h + experts));
  EXPECT_DOUBLE_EQ(weights("torchtitan, ep: 8"), 4 * shards + 2 * (rest + experts / 8));
}

// What lies within the reuse distance stays from its forward to its backward. Tensors of at most
// 100,000 elements are never sharded: norms here.
TEST(Memory, OfZeROCountsTheParametersThatItKeeps) {
  const auto gathered = [](const std::string& more) {
    const double all = 8030261248;
    return gpu_memory(test::load_text("model: llama3-8b\n"
                                      "device: {base: h100-sxm, memory_bytes: 0}\n"
                                      "precision: {parameters: bf16}\n"
                                      "cluster: {nodes: 2, gpus_per_node: 8}\n"
                                      "parallel: {framework: zero3" +
                                      more + "}\n")
                          .spec)
                   ->weights /
               2 -
           all / 16;
  };
  const double h = 4096, words = 128256 * h, layer = 218112000 - 2 * h;
  EXPECT_DOUBLE_EQ(gathered(", stage3_max_reuse_distance: 1000000000000"), 2 * words + 32 * layer);
  const std::string none = ", stage3_max_reuse_distance: 0, stage3_prefetch_bucket_size: ";
  EXPECT_DOUBLE_EQ(gathered(none + "0"), words + h);          // the head with its norm
  EXPECT_DOUBLE_EQ(gathered(none + "1"), words + 2 * layer);  // and the two layers before it
}

// The table of Llama-3.2 1B stays from the embedding to the head, whose norm is of the same unit.
TEST(Memory, OfATableThatTheHeadSharesIsBesideTheLayers) {
  const auto weights = [](const std::string& model) {
    return gpu_memory(test::load_text("model: " + model +
                                      "\ndevice: h100-sxm\nprecision: {parameters: bf16}\n"
                                      "cluster: {nodes: 1, gpus_per_node: 8}\n"
                                      "parallel: {framework: fsdp}\n")
                          .spec)
        ->weights;
  };
  const double h = 2048, words = 128256 * h, layer = 2 * h * h + 2 * h * 512 + 3 * h * 8192 + 2 * h,
               all = words + 16 * layer + h;
  EXPECT_DOUBLE_EQ(weights("llama3.2-1b"), 4 * all / 8 + 2 * (words + h + layer));
  EXPECT_DOUBLE_EQ(weights("{base: llama3.2-1b, tied_embeddings: false}"),
                   4 * (all + words) / 8 + 2 * (words + h));
}

// The shards of gradients have the type of the weights, however they are reduced.
TEST(Memory, OfFsdpsGradientsIsThatOfFp32) {
  for (const char* type : {"fp32", "bf16"}) {
    const JobSpec spec = test::load_text(
                             "model: llama3-8b\ndevice: h100-sxm\n"
                             "precision: {parameters: bf16, gradients: " +
                             std::string(type) +
                             "}\ncluster: {nodes: 2, gpus_per_node: 8}\n"
                             "parallel: {framework: fsdp}\n")
                             .spec;
    EXPECT_DOUBLE_EQ(gpu_memory(spec)->gradients, 8030261248. * 4 / 16) << type;
  }
}

// PHub's servers step the weights and keep the momentum.
TEST(Memory, OfPHubsRanksHasNoOptimizerState) {
  const auto memory = [](const std::string& framework) {
    return *gpu_memory(test::load_text("model: bert-large\ndevice: a100-sxm-80gb\n"
                                       "cluster: {nodes: 4, gpus_per_node: 1}\n"
                                       "servers: {count: 2}\nparallel: {framework: " +
                                       framework + "}\n")
                           .spec);
  };
  EXPECT_EQ(memory("phub").optimizer, 0);
  EXPECT_EQ(memory("phub").weights, memory("byteps").weights);
  EXPECT_EQ(memory("byteps").optimizer, 2 * memory("byteps").weights);
}

// Ranks that share the experts hold all else of a layer whole. Tensor parallelism does not split
// the experts further.
TEST(Memory, OfGatheredModelsSharesTheExpertsOnly) {
  const auto weights = [](const std::string& parallel) {
    return gpu_memory(test::load_text("model: mixtral-8x22b\n"
                                      "device: {base: h100-sxm, memory_bytes: 0}\n"
                                      "precision: {parameters: bf16}\n"
                                      "cluster: {nodes: 16, gpus_per_node: 8}\n"
                                      "parallel: {framework: torchtitan, reshard_after_forward: "
                                      "never" +
                                      parallel + "}\n")
                          .spec)
        ->weights;
  };
  const double all = 140620634112., experts = 56 * 8 * 3 * 6144. * 16384;
  EXPECT_DOUBLE_EQ(weights(", ep: 8"), 4 * all / 128 + 2 * (all - experts + experts / 8));
  EXPECT_DOUBLE_EQ(weights(", ep: 8, tp: 2"),
                   4 * all / 128 + 2 * ((all - experts) / 2 + experts / 8));
}

TEST(Memory, IsNotCheckedWhereItIsNotKnown) {
  EXPECT_EQ(test::load_error("model: llama3-70b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"), "");
}

}  // namespace
}  // namespace ghostrank
