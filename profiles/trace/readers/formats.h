// The readers of traces, one per format. Each takes the files of one job, in any order, and throws
// Error(usage) with file and place for whatever is malformed. `ranks` is the size of the job as far
// as the user has said it (0: not), for formats that do not say it themselves. Threading: pure but
// for reading.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiles/trace/trace.h"

namespace ghostrank {

// Bounds on what is not trusted.
inline constexpr std::int64_t kMostTraceRanks = 1 << 24;
inline constexpr std::size_t kMostTraceEvents = std::size_t{1} << 27;     // of a rank
inline constexpr std::uint64_t kMostTraceBytes = std::uint64_t{1} << 44;  // of a call

Trace import_execution_trace(const std::vector<std::string>& files, int ranks);
Trace import_kineto(const std::vector<std::string>& files, int ranks);
Trace import_chakra(const std::vector<std::string>& files, int ranks);
Trace import_param(const std::vector<std::string>& files, int ranks);
Trace import_simai(const std::vector<std::string>& files, int ranks);
Trace import_aicb(const std::vector<std::string>& files, int ranks);
Trace import_inspector(const std::vector<std::string>& files, int ranks);
Trace import_goal(const std::vector<std::string>& files, int ranks);
Trace import_layers(const std::vector<std::string>& files, int ranks);

}  // namespace ghostrank
