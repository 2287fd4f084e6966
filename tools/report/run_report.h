// A result as a person reads it: the verdict first, then what was played, how long a step took,
// what was sent, and how far the numbers may be trusted.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "emulator/result/result.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tools/text/table.h"

namespace ghostrank {

// One line: faithful, modelled or not, and why; whether the run is complete and verified.
std::string verdict(const Result& result);

// Verdict and tables.
std::string report(const LoadedJob& job, const Result& result, const Paint& paint);

// Before the start: what this host can source, what the job needs, and what follows from it.
std::string announcement(const LoadedJob& job, const Result& started, const Paint& paint);

// One row per measured iteration, with a header and the columns that tell results apart.
std::string iterations_csv(const Result& result);

}  // namespace ghostrank
