// The spans of a run as a Chrome trace (JSON array format, for Perfetto or chrome://tracing): one
// process per real host, one thread per (rank, stream), one complete event per span. Times are
// microseconds of the emulated cluster.
//
// Threading: pure function of its arguments, and the file it writes.
#pragma once

#include <string>

#include "emulator/result/result.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Compressed when `path` ends in ".gz". Throws Error(environment) when it cannot be written.
void write_chrome_trace(const std::string& path, const Result& result, const Workload& workload);

}  // namespace ghostrank
