// Every framework refuses a model that does not fit the device and says what would fit.
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

// A device has 80 GiB. Llama-3 8B has 8.03e9 parameters: 16 bytes each whole, 2 + 2 + 4 + 8 under
// ZeRO. Of 8,192 tokens it keeps 69,632 elements each in 32 layers, and logits: 41 GB.
TEST(Memory, OfWholeModelsHasNoNodesThatHelp) {
  for (const char* framework : {"ddp", "horovod", "dear", "wfbp", "mgwfbp", "bytescheduler"}) {
    EXPECT_EQ(error(framework, "llama3-8b", 100),
              "job.yaml:1:8: a rank has at least 169 GB of weights, gradients, optimizer state and "
              "activations under " +
                  std::string(framework) +
                  " and the device h100-sxm has 86 GB; use parallel.framework=zero3 or fsdp, or a "
                  "device with more memory (device.memory_bytes=0: no check)");
    EXPECT_EQ(error(framework, "llama3.2-3b", 1), "");
  }
}

TEST(Memory, OfActivationsNamesTheMicroBatchThatFits) {
  EXPECT_NE(error("ddp", "llama3.2-3b", 1, ", micro_batch: 3").find("use parallel.micro_batch=1 "),
            std::string::npos);
  EXPECT_NE(error("fsdp", "llama3-8b", 1, ", micro_batch: 4").find("use parallel.micro_batch=1 "),
            std::string::npos);
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
  for (const char* framework : {"fsdp", "zero3", "zero1", "ddp"})
    expect(error(framework, "llama3-70b", 64), "use parallel.framework=torchtitan with ");
}

TEST(Memory, IsNotCheckedWhereItIsNotKnown) {
  EXPECT_EQ(test::load_error("model: llama3-70b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"), "");
}

}  // namespace
}  // namespace ghostrank
