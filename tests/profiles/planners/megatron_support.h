// Megatron jobs by their parallel degrees, for tests that compare plans with closed forms.
#pragma once

#include <string>

#include "profiles/job/job.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"

namespace ghostrank::test {

struct MegatronJob {
  std::string model = "llama3-8b";
  int tp = 1, pp = 1, cp = 1, dp = 1, micro_batches = 1, micro_batch = 1;
  bool sequence = false, sharded = false;
  std::string recompute = "none", more;
  int per_node = 1;
  std::string device = "{base: h100-sxm, memory_bytes: 0}";
  std::string parameters = "bf16";

  int ranks() const { return tp * pp * cp * dp; }
  JobSpec spec() const {
    const auto n = [](int value) { return std::to_string(value); };
    return load_text("schema: ghostrank/job/1\nmodel: " + model + "\n" + "device: " + device +
                     "\nprecision: {parameters: " + parameters + ", gradients: fp32}\n" +
                     "cluster: {nodes: " + n(ranks() / per_node) +
                     ", gpus_per_node: " + n(per_node) + ", nics_per_node: " + n(per_node) + "}\n" +
                     "parallel: {framework: megatron, tp: " + n(tp) + ", pp: " + n(pp) +
                     ", cp: " + n(cp) + ", micro_batch: " + n(micro_batch) +
                     ", global_batch: " + n(micro_batches * micro_batch * dp) +
                     ", sequence_parallel: " + (sequence ? "true" : "false") +
                     ", distributed_optimizer: " + (sharded ? "true" : "false") +
                     ", recompute: " + recompute + more + "}\n")
        .spec;
  }
  Workload workload() const { return plan_workload(spec()); }
};

}  // namespace ghostrank::test
