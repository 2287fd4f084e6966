// Jobs of TorchTitan for tests: Llama-3 8B by default, on nodes of one GPU each.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank::test {

struct Titan {
  std::string model = "llama3-8b";
  int gpus = 8, micro_batch = 1, global_batch = 0;
  std::string more;

  Workload workload() const {
    return plan_workload(
        load_text("model: " + model +
                  "\ndevice: {base: h100-sxm, memory_bytes: 0}\ncluster: {nodes: " +
                  std::to_string(gpus) +
                  ", gpus_per_node: 1, nics_per_node: 1}\n"
                  "precision: {parameters: bf16, gradients: fp32}\n"
                  "parallel: {framework: torchtitan, micro_batch: " +
                  std::to_string(micro_batch) + ", global_batch: " + std::to_string(global_batch) +
                  more + "}\n")
            .spec);
  }
};

inline void expect_sound(const Workload& workload, const std::string& what) {
  for (const Role& role : workload.roles)
    EXPECT_TRUE(streams_end(role.iterations[0])) << what << ", " << role.name;
  EXPECT_EQ(unmatched_transfers(workload), "") << what;
}

// The members (world ranks) of every communicator of one kind.
inline std::set<std::vector<int>> groups_named(const Workload& workload, const std::string& name) {
  std::set<std::vector<int>> out;
  for (const Group& group : workload.groups)
    if (workload.group_names[group.kind] == name) out.insert(numbers_of(group.members));
  return out;
}

}  // namespace ghostrank::test
