// Whether what programs carry from an iteration into the next one (Program::outlives, Op::previous)
// fits together, whichever iterations follow each other. Part of check_workload().
//
// Of a job whose iterations each come to an end alone (workload_check.h), nothing more can wait for
// ever: with one order for the calls of a group, whatever an op waits for beyond its own iteration
// lies in an earlier one.
#pragma once

#include <string>

#include "profiles/workload/program.h"

namespace ghostrank {

// Throws Error(usage) that begins with `place`, where there is one.
void check_carried(const Workload& workload, const std::string& place);

}  // namespace ghostrank
