// Makes one Workload of several jobs that share a fabric.
//
//   job a: ranks 0-3, groups dp, tp       ranks 0-3, groups a/dp, a/tp
//   job b: ranks 0-1, group  dp      ──►  ranks 4-5, group  b/dp
//
// Threading: pure function.
#pragma once

#include <string>
#include <vector>

#include "profiles/workload/program.h"

namespace ghostrank {

struct NamedWorkload {
  std::string name;  // unique
  Workload workload;
};

// Throws Error(usage), which begins with the job's name, if a job has storage ranks: only a job
// that plays alone may have them.
Workload merge(const std::vector<NamedWorkload>& jobs);

}  // namespace ghostrank
