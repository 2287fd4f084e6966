// ghostrank plan --search: the best plans of a job, as a table and as JSON.
//
// Threading: main thread.
#pragma once

#include <string>
#include <vector>

#include "profiles/load/load.h"
#include "tools/arguments.h"

namespace ghostrank {

struct SearchFlags {
  int best = 10;                  // plans that are shown
  int play = 3;                   // of them that are played in virtual time
  std::vector<std::string> keep;  // what stays as the job has it
};

// Prints the table, unless `quiet` or the JSON goes to stdout. Throws Error(usage) as
// search_plans() does.
void show_search(JobFlags flags, const SearchFlags& search, const std::string& json, bool quiet);

}  // namespace ghostrank
