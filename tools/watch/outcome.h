// How verbs that play something meet the job's other processes and end: exit statuses, and their
// reasons on stderr.
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

// Meets the job's other processes, which must be of the same commit. From then on a process that
// says nothing counts as lost after 20 s, or soon after the job's stall timeout if that is shorter
// (silence_of_the_lost()).
std::unique_ptr<Control> meet(World world, const RunSpec& run);

// Calls `prepare` before the processes meet. If it throws Error, prints that, meets the others to
// tell them why the job ends, for world.timeout at most, and returns the error's exit status; else
// 0. What this process alone finds wrong, such as its own flags or its copy of the job, would leave
// the others waiting for it.
int prepared_here(const World& world, const std::function<void()>& prepare);

// Prints the reason on stderr; returns 1.
int failed(const std::string& why);

// Exit status: 0 if nothing stopped the run, 1 if it failed or lost a process, 3 if a machine did
// not give what the run needed, 129, 130, 143 or 152 for SIGHUP, SIGINT, SIGTERM or SIGXCPU.
int stopped_status(const Control& control, int signal);

// Returns what `play` returns. If `play` throws Error because the run was interrupted, here or on
// another process, before it began, prints the error (process 0 only) and returns the interrupt's
// status.
int unless_interrupted(const Control& control, const StopOnSignal& signals,
                       const std::function<int()>& play);

// "2026-03-01T12:00:00Z"
std::string utc_now();
std::string local_now();  // 2026-07-05 12:00:00, local time

}  // namespace ghostrank
