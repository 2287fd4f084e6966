// Finds profiles: turns a name, a path or an inline mapping into one mapping.
//
//   gpt2-xl                        models/gpt2-xl.yaml of the first profile directory that has it
//   ./mine.yaml, mine.csv          a path: as given, else next to the file that names it
//   {kind: layers, …}              inline
//   {base: gpt2-xl, layers: 12}    a profile with some keys replaced
//
// Threading: reads the environment and files, keeps no state.
#pragma once

#include <string>
#include <string_view>

#include "profiles/input/yaml.h"

namespace ghostrank {

struct ProfileKind {
  std::string_view name;    // "model"
  std::string_view folder;  // "models"
  std::string_view schema;  // "ghostrank/model/1"
};

inline constexpr ProfileKind kModelProfile{"model", "models", "ghostrank/model/1"};
inline constexpr ProfileKind kDeviceProfile{"device", "devices", "ghostrank/device/1"};
inline constexpr ProfileKind kClusterProfile{"cluster", "clusters", "ghostrank/cluster/1"};

// The mapping that `given` stands for, without `schema` and `base`. A profile file without a `name`
// is named after the file. `near` is the folder of the file that names the profile.
YamlValue resolve_profile(const YamlValue& given, const ProfileKind& kind, const std::string& near);

// Keys of `over` replace those of `under`; mappings merge key by key.
void merge_into(YamlValue& under, const YamlValue& over);

// `path` itself, or the job named `path` in the profile directories.
std::string find_job_file(const std::string& path);

// True if `text` names a job, not a model: "-" (standard input), the path of a job file or of a
// result, or a name that only jobs have.
bool names_job(const std::string& text);

std::string folder_of(const std::string& path);

}  // namespace ghostrank
