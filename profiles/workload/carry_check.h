// Checks that work carried from one iteration into the next (Program::outlives, Op::previous) fits
// together for every pair of successive iterations. Part of check_workload().
//
// If each iteration ends when played alone (workload_check.h), carrying cannot cause a deadlock: a
// group's calls have one order, so outside its own iteration an op awaits only earlier ones.
#pragma once

#include <string>

#include "profiles/workload/program.h"

namespace ghostrank {

// Throws Error(usage); its text begins with `source` unless that is empty.
void check_carried(const Workload& workload, const std::string& source);

}  // namespace ghostrank
