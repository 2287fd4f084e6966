// From a job file to the values of a JobSpec: file, environment and -s flags merged, profiles
// resolved, every key checked.
//
// Errors: Error(usage) "FILE:LINE:COL: what; what to do". Threading: pure functions of the files
// and the environment.
#pragma once

#include <string>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

// One resolved key, for --print-config and the result's `config`: path "cluster.nic.rate", the
// value as YAML would write it, and its origin: "FILE:LINE", "-s", "GHOSTRANK_SEED", "default".
struct ConfigEntry {
  std::string path, value, origin;
};

struct LoadedJob {
  JobSpec spec;
  std::vector<ConfigEntry> entries;  // every key, in the schema's order
  std::string config_json;  // the resolved job as a JSON object (a job file again: JSON is YAML)
};

// Loads a job file, or the `config` of a result file (schema ghostrank/result/1). `overrides` are
// "path=value", later ones win; GHOSTRANK_<PATH WITH _> variables come before them. Profiles are
// looked up by path, next to the job file, then in profile_directories(). Throws Error(usage)
// "FILE:LINE:COL: what; what to do".
LoadedJob load_job(const std::string& path, const std::vector<std::string>& overrides);

// A job without a model, for whoever brings a workload of his own: cluster, collectives, fabric,
// run. `base` is what a file would say, in YAML; environment and overrides come over it. Throws
// Error(usage), also for a key that describes what is trained.
LoadedJob load_cluster_job(const std::string& base, const std::vector<std::string>& overrides);

// $GHOSTRANK_PROFILES (colon-separated), those installed with this program, the source tree this
// was built from, the installed share directory.
std::vector<std::string> profile_directories();

}  // namespace ghostrank
