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
// ZeRO.
TEST(Memory, OfWholeModelsHasNoNodesThatHelp) {
  for (const char* framework : {"ddp", "horovod", "dear", "wfbp", "mgwfbp", "bytescheduler"}) {
    EXPECT_EQ(error(framework, "llama3-8b", 100),
              "job.yaml:1:8: a rank has at least 128 GB of weights, gradients and optimizer state "
              "under " +
                  std::string(framework) +
                  " and the device h100-sxm has 86 GB; use parallel.framework=zero3 or fsdp, or a "
                  "device with more memory (device.memory_bytes=0: no check)");
    EXPECT_EQ(error(framework, "llama3.2-3b", 1), "");
  }
}

TEST(Memory, OfShardedModelsNamesTheNodesThatFit) {
  // 70.55e9 x 16 B on 8 ranks, and a unit of 1.05e9 x 2 B gathered.
  EXPECT_NE(error("fsdp", "llama3-70b", 1).find("143 GB"), std::string::npos);
  EXPECT_NE(error("fsdp", "llama3-70b", 1).find("use cluster.nodes=2 or more"), std::string::npos);
  EXPECT_EQ(error("fsdp", "llama3-70b", 2), "");
  EXPECT_NE(error("fsdp", "llama3-70b", 2, ", dp_replicate: 2").find("use cluster.nodes=4 or more"),
            std::string::npos);
  EXPECT_EQ(error("zero3", "llama3-70b", 2), "");
  EXPECT_NE(error("zero1", "llama3-70b", 64).find("use parallel.framework=zero3"),
            std::string::npos);
}

TEST(Memory, IsNotCheckedWhereItIsNotKnown) {
  EXPECT_EQ(test::load_error("model: llama3-70b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"), "");
}

}  // namespace
}  // namespace ghostrank
