// How a verb that plays something ends: exit statuses, and why on stderr.
//
// Threading: main thread.
#pragma once

#include <string>

#include "emulator/control.h"

namespace ghostrank {

// Says why on stderr; returns 1.
int failed(const std::string& why);

// 0 while the run was not stopped, 1 when it failed or lost a process, 130 or 143 for a signal.
int stopped_status(const Control& control, int signal);

// "2026-03-01T12:00:00Z"
std::string utc_now();
std::string local_now();  // 2026-07-05 12:00:00, local time

}  // namespace ghostrank
