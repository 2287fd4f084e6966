// Files that the config of a job only names, because what they hold is too much or no text:
// programs, traces, plug-ins, files of algorithms, programs of switches. A result says what they
// held, so that its hash stands for that and not for where they were, and a replay tells that they
// have changed.
//
// Threading: reads files, keeps no state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiles/input/yaml.h"

namespace ghostrank {

struct LoadedJob;

struct NamedFile {
  std::string path, hash;  // the absolute path; a hash of what it holds
};
using NamedFiles = std::map<std::string, NamedFile>;  // by name as in the config

// Those of a job that has been loaded, read again. Pipes are not among them.
NamedFiles named_files(const LoadedJob& job);

// A config with a last member `files`, {NAME: {path: …, hash: …}}, if there are any; those of such
// a config; JSON with hashes in place of the names.
std::string with_files(const std::string& config_json, const NamedFiles& files);
NamedFiles files_in(const std::string& config_json);
std::string with_contents(const std::string& json, const NamedFiles& files);

// For a result's job: reads its `files`; puts paths in place of names in its config that are found
// neither here nor in the folder `near`; returns a note for each file that has changed.
NamedFiles files_played(const YamlValue& result);
void find_files(YamlValue& config, const NamedFiles& played, const std::string& near);
std::vector<std::string> notes_of_changed(const NamedFiles& played, const LoadedJob& job);

}  // namespace ghostrank
