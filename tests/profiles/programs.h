// The sends of a program, and whether programs fit together, for the tests of planners.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiles/workload/program.h"

namespace ghostrank::test {

struct CallSums {                              // one rank, one kind of group
  std::map<Func, std::uint64_t> calls, bytes;  // bytes: count x element size
  std::uint64_t sent = 0, received = 0;        // bytes of sends and receives
};
CallSums sums_of(const Program& program, const Workload& workload, const std::string& group);

// Runs the streams of a program against each other as the engine does, with communication that
// takes no time; a wait uses up one record of its event. False if they wait for each other for
// ever, or if a record has no wait.
bool streams_end(const Program& program);

// The labels of what the first stream computes in that play before it stops, if no send ever ends.
std::vector<std::string> computed_without_sends(const Program& program);

// Compares, in every group, the bytes of each member's sends to a peer with those of the peer's
// receives, in order. Returns "" if all match, else the first group where they differ.
std::string unmatched_transfers(const Workload& workload);

}  // namespace ghostrank::test
