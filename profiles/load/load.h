// From a job file to a JobSpec: merges file, environment and -s flags, resolves profiles, checks
// every key.
//
// Errors: Error(usage) "FILE:LINE:COL: what; what to do". Threading: pure functions of the files
// and the environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

// One resolved key, for --print-config and the result's `config`: path ("cluster.nic.rate"), value
// in YAML, and origin ("FILE:LINE", "-s", "GHOSTRANK_RUN_SEED", "default").
struct ConfigEntry {
  std::string path, value, origin;
};

struct LoadedJob {
  JobSpec spec;
  std::vector<ConfigEntry> entries;  // every key, in the table's order
  std::string config_json;           // the resolved job as a JSON object, itself a valid job file
};

// Loads a job file, or the `config` of a result file (schema ghostrank/result/1). `overrides` are
// "path=value"; the last one of a path wins. Variables GHOSTRANK_<PATH WITH _> are applied before.
// Profiles are looked up by path, next to the job file, then in profile_directories(). Throws
// Error(usage) "FILE:LINE:COL: what; what to do".
LoadedJob load_job(const std::string& path, const std::vector<std::string>& overrides);

// A job without a model, for callers with a workload of their own: cluster, collectives, fabric,
// run. `base` is YAML that takes the place of a file; environment and overrides are applied to it.
// Throws Error(usage), also for a key that describes what is trained.
LoadedJob load_cluster_job(const std::string& base, const std::vector<std::string>& overrides);

// Only the keys of such a job's cluster, for callers that choose the number of nodes when they know
// the GPUs of one: what depends on it is not checked.
struct ClusterSize {
  int gpus_per_node = 1;
  std::optional<int> nodes;  // if the job gives it
};
ClusterSize load_cluster_size(const std::string& base, const std::vector<std::string>& overrides);

}  // namespace ghostrank
