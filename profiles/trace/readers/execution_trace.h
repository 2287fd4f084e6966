// The calls of ranks' execution traces, for a reader that has their times from elsewhere.
//
// PyTorch numbers what its host records. The number is `rf_id` in an execution trace and "Record
// function id" in Kineto's, where "External id" leads from there to the kernel. Units and errors as
// in formats.h. Threading: reads files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"

namespace ghostrank {

struct ExecutionCalls {
  Trace trace;                                      // of one rank
  std::map<std::int64_t, std::uint32_t> by_record;  // index of the event by number
  std::vector<std::int64_t> records;                // numbers of calls and waits, growing
};
// Those of the execution traces among the files, by rank; takes these out of the list.
std::map<WorldRank, ExecutionCalls> take_execution_calls(std::vector<std::string>& files);

}  // namespace ghostrank
