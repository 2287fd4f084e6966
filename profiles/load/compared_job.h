// A job as its processes compare theirs before they play it, wherever each of them keeps its files.
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/load/load.h"

namespace ghostrank {

// The resolved job without the paths of programs and traces, whose contents are compared apart
// (contents_of_files). Equal texts stand for equal jobs.
std::string config_without_paths(const LoadedJob& job);

struct ComparedKey {
  std::string path, given;  // as in LoadedJob::entries
  std::string resolved;     // with the texts of files and profiles that it names
};

// The keys of that text.
std::vector<ComparedKey> compared_keys(const LoadedJob& job);

}  // namespace ghostrank
