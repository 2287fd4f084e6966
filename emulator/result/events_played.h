// Which of a job's events happened in a run, and when.
//
// Threading: pure functions.
#pragma once

#include <set>

#include "emulator/result/result.h"
#include "profiles/job/events.h"

namespace ghostrank {

// Sets `result.events` to those of the first `lasted` after the start of the measured iterations,
// which `result.iterations` holds, and notes how many were to come later. `real_time`: wall time is
// emulated time, dilated. `missing`: processes that were not heard of at the end; the loop may not
// have looked at its clock since one was killed.
void report_events(const JobEvents& events, Picoseconds lasted, bool real_time,
                   const std::set<Host>& missing, Result& result);

}  // namespace ghostrank
