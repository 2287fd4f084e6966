// The ops of a program in the order in which a host issues them, for formats that list a rank's
// work one by one instead of stream by stream.
//
// The program is played with calls that take no time: an op is issued when its stream reaches it
// and what its stream waits for has been reached. Waits and records are left out; an op lists the
// calls that must end before it starts.
//
// Units: picoseconds from the start of the iteration. Threading: pure function.
#pragma once

#include <cstddef>
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
// later calls are behind others: a wait holds up what follows in a list, which may be what the
// other rank waits for. Throws Error(usage) for what one iteration does not hold: a stream that
// outlives it, a wait for the one before, a wait that nothing ends.
std::vector<IssuedOp> issue_order(const Program& program);

}  // namespace ghostrank
