// The readers of traces, one per format. Each takes the files of one job in any order, and throws
// Error(usage) with file and position for malformed input. `ranks` is the size of the job if the
// user gives it (0: not given), for formats that lack it. Threading: pure, except that they read
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/trace/trace.h"
#include "profiles/workload/rooted.h"

namespace ghostrank {

// Bounds on untrusted input.
inline constexpr std::int64_t kMostTraceRanks = 1 << 24;
inline constexpr std::size_t kMostTraceEvents = std::size_t{1} << 27;     // per rank
inline constexpr std::uint64_t kMostTraceBytes = std::uint64_t{1} << 44;  // per call
// Of one computation, or of all kernels together: 11 days.
inline constexpr std::int64_t kMostTraceNanos = 1'000'000'000'000'000;

Trace import_execution_trace(const std::vector<std::string>& files, int ranks);
Trace import_kineto(const std::vector<std::string>& files, int ranks);
Trace import_chakra(const std::vector<std::string>& files, int ranks);
Trace import_param(const std::vector<std::string>& files, int ranks);
Trace import_simai(const std::vector<std::string>& files, int ranks);
Trace import_aicb(const std::vector<std::string>& files, int ranks);
Trace import_inspector(const std::vector<std::string>& files, int ranks);
Trace import_flight_recorder(const std::vector<std::string>& files, int ranks);
Trace import_nccl_log(const std::vector<std::string>& files, int ranks);
Trace import_goal(const std::vector<std::string>& files, int ranks);
Trace import_nsys(const std::vector<std::string>& files, int ranks);
Trace import_layers(const std::vector<std::string>& files, int ranks);

// Index of the group, which is added if new.
std::uint32_t group_like(const TraceGroup& group, Trace& trace);

// The note of a trace that does not name the roots of so many calls.
inline std::string note_of_roots(std::uint64_t calls) {
  return std::to_string(calls) + " calls have a root that the format does not name: member 0";
}

// The note of a trace with so many kernels of NCCL whose call is unknown, and why.
inline std::string note_of_silent_kernels(std::uint64_t kernels, const std::string& why) {
  return std::to_string(kernels) + " kernels of NCCL " + why +
         ": they take their time, but send nothing";
}

// A file's format is recognized from this many of its first bytes.
inline constexpr std::size_t kTraceHead = 64 << 10;
bool is_execution_trace(std::string_view head);

// The number at the end of a file's name, before its extensions: the rank, for formats that have a
// file for each.
std::optional<int> rank_at_end(const std::string& path);

// By file, its rank_at_end(), where that is no part of a name as in "resnet50.json": where it
// stands alone, behind a separator or behind "rank", or where several files differ in it alone.
std::vector<std::optional<int>> ranks_in_names(const std::vector<std::string>& files);

// The note of a file whose name says no rank.
inline std::string note_of_rank_0(const std::string& file) {
  return file + ": its name says no rank (as trace_3.json does): taken as rank 0's";
}

}  // namespace ghostrank
