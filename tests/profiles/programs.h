// What a program sends, and whether programs fit together, for the tests of planners.
#pragma once

#include <map>
#include <string>

#include "profiles/workload/program.h"

namespace ghostrank::test {

struct CallSums {                              // of one rank and one kind of group
  std::map<Func, std::uint64_t> calls, bytes;  // bytes: count x element, as the call has it
  std::uint64_t sent = 0, received = 0;        // bytes of sends and receives
};
CallSums sums_of(const Program& program, const Workload& workload, const std::string& group);

// Runs the streams against each other as the engine does, communication taking no time, a wait
// using its event up; false: they wait for each other for ever, or record an event that still
// holds.
bool streams_end(const Program& program);

// Empty when every member of every group sends to each other member exactly what that one receives
// from it, in the same order; else the first difference.
std::string unmatched_transfers(const Workload& workload);

}  // namespace ghostrank::test
