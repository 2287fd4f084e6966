// The node on which a job's NCCL communicators are: the described one, the named template, or with
// "auto" one with the cluster's GPUs and NICs. And which of its GPUs a group's members have.
//
// Threading: one instance belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/nccl/machine/machine.h"
#include "profiles/job/job.h"

namespace ghostrank {

class NcclNodeOfJob {
 public:
  // Throws Error(usage) for a template that the cluster's nodes do not fit.
  explicit NcclNodeOfJob(const JobSpec& spec);

  // Null if the job plays nothing of NCCL.
  const std::shared_ptr<const NcclMachine>& machine() const { return machine_; }

  // The GPU of each member by number on its node, or nothing if NCCL's search gives the same for a
  // node's first GPUs and all nodes have the same ones, as far as they go. `nodes`: the emulated
  // node of each member. Throws Error(usage).
  std::vector<std::int32_t> gpus_that_matter(const std::vector<std::int32_t>& nodes,
                                             const std::vector<std::int32_t>& gpus);

 private:
  bool like_first(const std::vector<int>& gpus, bool between);

  const JobSpec& spec_;
  std::shared_ptr<const NcclMachine> machine_;
  std::map<std::pair<std::vector<int>, bool>, bool> like_first_;
};

}  // namespace ghostrank
