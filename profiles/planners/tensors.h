// A job's `tensors:` keys, which describe the content of its tensors: reading and checking them.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "collectives/tensor_content.h"
#include "profiles/input/keys.h"
#include "profiles/input/yaml.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Sets `tensors`, which stays empty if no block is zero, and `tensor_rules`. `near`: the folder of
// the job, for a file of measured overlaps.
void read_tensors(const Settings& in, const std::string& near, JobSpec& spec);

// A file of measured overlaps: of all blocks, and of those of some tensors.
struct MeasuredOverlaps {
  Sparsity all;
  std::vector<TensorRule> by_tensor;
};
// Throws Error(usage) if `root` is no such file.
MeasuredOverlaps measured_overlaps(const YamlValue& root, std::uint64_t block);

// Throws Error(usage) if the job has `tensors:` but its programs name no tensor, or if the ranks of
// a communicator cannot hold tensors of that density and overlap.
void check_tensors(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
