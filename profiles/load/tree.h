// The steps of load_job(), for loaders of trees that are not one file: several_jobs.cpp.
//
// Errors: Error(usage) as in load.h. Threading: as load.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/input/yaml.h"
#include "profiles/load/load.h"
#include "profiles/load/named_files.h"

namespace ghostrank {

// The tree of a job file, or of the job in a result file. "standard input" is read, too. `played`:
// receives the files that a result's job names.
YamlValue read_job_tree(const std::string& path, NamedFiles* played = nullptr);
// A cluster given by name, or with a base, becomes a mapping with all that its profile says.
void expand_cluster(YamlValue& root, const std::string& near);

// One job, environment and flags already in its tree. Paths in it are looked up next to `file`.
LoadedJob load_tree(YamlValue root, const std::string& file);

// True for keys that describe what is trained; keys_without_training(): all other keys.
bool is_about_training(const Key& key);
std::vector<Key> keys_without_training();

// What several jobs have that concerns the nodes and the fabric of the outer file.
struct BesideJobs {
  ServerSpec servers;                  // of all of them
  std::set<std::string_view> schemes;  // that play collectives
};

// Keys whose default is not what the job plays where it does not give them: sizes of buckets take
// the place of a captured model's own, and a time for an external switch claims that it is guarded.
std::set<std::string_view> keys_that_say_more(const JobSpec& spec);

// Reads keys_without_training() into `spec`. `jobs` is null for a job alone.
void read_setting(const Settings& in, const std::string& near, JobSpec& spec,
                  const BesideJobs* jobs = nullptr);
std::vector<JobVariant> read_variants(const Setting& setting);
// Writes entries and JSON of a job whose spec has been read. `resolved`: by the key's path, the
// values that replace names.
void write_config(const Settings& in, std::map<std::string, YamlValue> resolved, LoadedJob& job);

}  // namespace ghostrank
