// Between a job file and its settings: environment and -s flags merged into the tree, and the
// settings written out again as entries and JSON.
//
// Threading: reads the environment; keeps no state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank {

// Sets `path` in a job tree. A mapping is merged into one that is there; `model` and `device` are
// replaced as a whole, but a key inside them ("device.efficiency") changes that key only.
void set_path(YamlValue& root, const std::string& path, YamlValue value);

// GHOSTRANK_RUN_SEED=7 sets run.seed, and so on for every key.
void apply_environment(YamlValue& root);
std::string environment_name(std::string_view path);

// "path=value", the value in YAML.
void apply_override(YamlValue& root, const std::string& text);

// {base: NAME} in place of a name.
YamlValue with_base(const YamlValue& name);

std::vector<ConfigEntry> make_entries(const Settings& settings);

// `resolved` holds the descriptions that stand for the keys of type `profile`.
std::string make_config_json(const Settings& settings,
                             const std::map<std::string, YamlValue>& resolved);

}  // namespace ghostrank
