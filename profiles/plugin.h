// Loading a plugin: the shared object, the comparison of its ABI, the proof of its rows.
//
// Threading: for one thread.
#pragma once

#include <span>
#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

// The rows of the shared object, each proved for a few sizes and counts; one with agents also for
// a few data types and orders of events, with the misfortunes it claims to survive. They stay valid
// for the process's life: it is never unloaded. Throws Error.
std::span<const Algorithm> load_plugin_rows(const std::string& file);

}  // namespace ghostrank
