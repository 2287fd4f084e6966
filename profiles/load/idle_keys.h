// Keys that a job gives and that have no effect in it: nothing is silently ignored. The columns of
// a key's row (load/job_schema.cpp) say where it means something:
//
// clang-format off
//   of another framework or library                    refused
//   of another fabric, or beside another key's value   refused where that is a default that nobody
//                                                      chose; a note where the job chose it, because
//                                                      one file is played on several fabrics, and
//                                                      with and without what a setting is for
// clang-format on
//
// A key at its default may stand anywhere. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Notes for JobSpec::notes. `spec` has its framework and its collectives. Throws Error(usage).
std::vector<std::string> idle_keys(const Settings& in, const JobSpec& spec);

// What a reader of this job's plan or result must know of the job: its notes, and the algorithms
// that it names for calls which it never makes.
std::vector<std::string> notes_of(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
