// How a verb that plays something meets the other processes and ends: exit statuses, and why on
// stderr.
//
// Threading: main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "emulator/control/control.h"
#include "profiles/job/job.h"
#include "tools/watch/signals.h"

namespace ghostrank {

// Meets the other processes, which lose one another as soon as the job's time-out for stalls asks.
std::unique_ptr<Control> meet(World world, const RunSpec& run);

// Says why on stderr; returns 1.
int failed(const std::string& why);

// 0 while the run was not stopped, 1 when it failed or lost a process, 3 when a machine did not
// give what was needed, 130 or 143 for a signal.
int stopped_status(const Control& control, int signal);

// What `play` returns; where an interrupt, here or elsewhere, made it throw before the run began,
// the status of that.
int unless_interrupted(const Control& control, const StopOnSignal& signals,
                       const std::function<int()>& play);

// "2026-03-01T12:00:00Z"
std::string utc_now();
std::string local_now();  // 2026-07-05 12:00:00, local time

}  // namespace ghostrank
