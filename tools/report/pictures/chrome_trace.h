// Writes the spans of a run as a Chrome trace (JSON object format, for Perfetto or
// chrome://tracing): one process per real host, one thread per (rank, stream, slot), one complete
// event per span. The stages of a tensor's parts (Stage) are a process of their own for each tensor
// of a rank, and a thread for each part. Events of the job (Result::events) are global instant
// events. Times are microseconds of the emulated cluster.
//
// Threading: any thread; touches nothing but its arguments and the file.
#pragma once

#include <string>

#include "emulator/result/result.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// Compresses with gzip when `path` ends in ".gz". Throws Error(usage) when `path` is an input of
// this command, Error(environment) when it cannot be written.
void write_chrome_trace(const std::string& path, const Result& result, const Workload& workload);

}  // namespace ghostrank
