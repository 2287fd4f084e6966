// `jobs` of a job file: several jobs on the nodes of one cluster.
//
// clang-format off
//
//   the outer file    jobs, cluster, fabric, run, scale   and whatever else it gives, for every job
//   a job's file      model, device, parallel, …          its own cluster, fabric and run do not count
//
// clang-format on
//
// Every job is loaded as if it were alone on a cluster of as many nodes as it has, so its planner
// and its checks are those of any job.
//
// Threading: as load.h.
#pragma once

#include <string>

#include "profiles/input/yaml.h"
#include "profiles/load/load.h"

namespace ghostrank {

// `root` is the tree of the outer `file`, with environment and flags; it has `jobs`. Throws
// Error(usage).
LoadedJob load_jobs(YamlValue root, const std::string& file);

}  // namespace ghostrank
