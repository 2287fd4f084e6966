// The ops of a program in the order in which a host issues them, for formats that list a rank's
// work one by one instead of stream by stream.
//
// The program is played with calls that take no time: an op is issued when its stream reaches it
// and what its stream waits for has been reached. Waits and records are left out; an op lists the
// calls that must end before it starts.
//
// A wait holds up all that follows it in a list. Lists that ranks make alone may therefore hold
// each other up for ever; those that they make together do not: a collective is issued by all
// members at once, a receive after its send, so all lists agree with one order of the whole job.
//
// Units: picoseconds from the start of the iteration. Threading: pure functions; an IssueOrders may
// be read by any number of threads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profiles/workload/program.h"

namespace ghostrank {

struct IssuedOp {
  const Op* op = nullptr;          // into the program: a computation, a call, a send or a receive
  std::size_t stream = 0, at = 0;  // its position in the stream
  Picoseconds start = 0;           // computations so far, on the longest way here
  std::vector<std::size_t> ends;   // calls issued before, by index: over before this one starts
};

// Returns the ops by start. At equal starts computations are last, and calls that must wait for
// later calls are behind others. Throws Error(usage) for what one iteration does not hold: a stream
// that outlives it, a wait for the one before, a wait that nothing ends.
std::vector<IssuedOp> issue_order(const Program& program);

// The same of all ranks of a workload, together. Keeps about a byte for each op of each rank, and
// refers to the workload.
class IssueOrders {
 public:
  // `iteration`: number of the programs; a role with fewer plays its last. Throws as issue_order().
  IssueOrders(const Workload& workload, std::size_t iteration);

  const Program& program(WorldRank rank) const;
  std::vector<IssuedOp> of(WorldRank rank) const;

 private:
  const Workload& workload_;
  const std::size_t iteration_;
  VectorBy<WorldRank, std::string> turns_;  // packed (issue_order.cpp)
};

}  // namespace ghostrank
