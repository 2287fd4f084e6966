// The files that a job names by keys of its own (rates, links, places, overlaps, histograms,
// costs), written in place of their names, so that the job's config says all of it and can be
// played elsewhere.
//
// Errors: Error(usage) as in input_file.h. Threading: reads files, keeps no state.
#pragma once

#include <map>
#include <string>

#include "profiles/input/keys.h"
#include "profiles/input/yaml.h"

namespace ghostrank {

// Adds their values to `resolved`, by the key's path. `near`: the folder of the job's file.
void put_files_in_place(const Settings& in, const std::string& near,
                        std::map<std::string, YamlValue>& resolved);

}  // namespace ghostrank
