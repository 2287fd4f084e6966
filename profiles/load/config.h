// The step from a job file to its settings: merges environment and -s flags into the tree, and
// writes the settings as entries and JSON.
//
// Threading: reads the environment; keeps no state.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank {

// Sets `path` in a job tree. A mapping is merged into an existing mapping, but `model` and `device`
// are replaced whole; a key inside them ("device.efficiency") changes only that key.
void set_path(YamlValue& root, const std::string& path, YamlValue value);

// Applies variables such as GHOSTRANK_RUN_SEED=7, which sets run.seed.
void apply_environment(YamlValue& root);
// The variables that are set and say what a job is, those of profiles included:
// "GHOSTRANK_RUN_SEED=7".
std::vector<std::string> job_variables();
std::string environment_name(std::string_view path);

// Applies "path=value"; the value is YAML.
void apply_override(YamlValue& root, const std::string& text);

// True if such overrides give the key `path` a value.
bool gives(const std::vector<std::string>& overrides, std::string_view path);

// The first key that `earlier` overrides give and that `later` ones give otherwise, or replace
// together with what it is in; empty: none.
std::string undone(const std::vector<std::string>& earlier, const std::vector<std::string>& later);

// A name as the mapping {base: NAME}.
YamlValue with_base(const YamlValue& name);

std::vector<ConfigEntry> make_entries(const Settings& settings);

// `resolved` holds the mappings that replace the keys of type `profile`. The keys `if_given` are
// written where the job gives them; of all others that have a default, this is written, too.
std::string make_config_json(const Settings& settings,
                             const std::map<std::string, YamlValue>& resolved,
                             const std::set<std::string_view>& if_given);

}  // namespace ghostrank
