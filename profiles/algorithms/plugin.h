// Loading a plugin: the shared object, the comparison of its ABI, the proof of its rows.
//
// Threading: for one thread.
#pragma once

#include <string>

#include "collectives/plugin.h"

namespace ghostrank {

// What the shared object brings. Its algorithms are proved for a few sizes and counts; those with
// agents also for a few data types and orders of events, with the misfortunes they claim to
// survive; compressors are tried on a few tensors, routings and placements asked about a few flows
// and helpers. All stays valid for the process's life: it is never unloaded. Throws Error.
const Plugin& load_plugin_file(const std::string& file);

}  // namespace ghostrank
