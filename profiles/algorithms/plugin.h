// Loads a plugin: opens the shared object, compares its ABI, proves its rows.
//
// Threading: one thread.
#pragma once

#include <string>

#include "collectives/plugin.h"

namespace ghostrank {

// Returns the rows of the shared object `file`. Proves algorithms for a few sizes and counts; those
// with agents also for a few data types and orders of events, with the faults that they claim to
// survive. Tries compressors on a few tensors, routings on a few flows and placements on a few
// helpers. The rows stay valid until the process ends, because the object is never unloaded. Throws
// Error.
const Plugin& load_plugin_file(const std::string& file);

}  // namespace ghostrank
