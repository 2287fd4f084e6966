// Formats a result for people: the verdict first, then the job, the step times, the traffic, and
// how far to trust the numbers.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "emulator/result/result.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tools/text/table.h"

namespace ghostrank {

// How verdicts on good runs begin, those of bench too.
inline constexpr char kModelledVerdict[] =
    "modelled: virtual time, nothing was measured on a network";
inline constexpr char kFaithfulVerdict[] = "faithful: this machine kept up";
// Of a result file that does not say how far to trust the run.
inline constexpr char kUnjudged[] = "not judged: the result does not say how far to trust it";

// One line: faithful, modelled or not, and why; whether the run is complete and verified.
std::string verdict(const Result& result);

// Verdict and tables.
std::string report(const LoadedJob& job, const Result& result, const Paint& paint);

// Printed before the start: the rates that this host can source, the rates that the job needs, and
// the dilation that follows. Empty in virtual time.
std::string announcement(const LoadedJob& job, const Result& started, const Paint& paint);

// One row per measured iteration, with a header and the columns that tell results apart.
std::string iterations_csv(const Result& result);

}  // namespace ghostrank
