// A job's `tensors:` keys, which describe the content of its tensors: reading and checking them.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>

#include "collectives/tensor_content.h"
#include "profiles/input/keys.h"
#include "profiles/input/yaml.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Empty if no block is zero. `near`: the folder of the job, for a file of measured overlaps.
std::optional<Sparsity> read_tensors(const Settings& in, const std::string& near);

// A file of measured overlaps. Throws Error(usage) if it is none.
Sparsity measured_overlap(const YamlValue& root, std::uint64_t block);

// Throws Error(usage) if the job has `tensors:` but its programs name no tensor, or if the ranks of
// a communicator cannot hold tensors of that density and overlap.
void check_tensors(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
