// An order in which the events of a trace can be played: it respects all dependencies, the members
// of a communicator make its calls in the same order, and nothing is received before it is sent.
//
// Matching: the k-th call of a rank in a communicator is the k-th call of every other member, in
// each rank's own order (dependencies, then start times, then file order). The k-th send from one
// rank to another with a tag is the k-th receive with that tag. Threading: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/trace.h"

namespace ghostrank {

struct TraceOrder {
  std::vector<std::vector<std::uint32_t>> sequence;  // by given rank: indices of events
  // By given rank and event: the other end of a message between given ranks, else kNoIndex. Empty:
  // the rank has no messages.
  std::vector<std::vector<std::uint32_t>> partner;
  // By given rank and event: number of a collective in its communicator.
  std::vector<std::vector<std::uint32_t>> call;
};

// Throws Error(usage) with file and event for cycles, calls that do not match, and messages that
// nobody sends or receives. Matches only calls and messages between ranks of the trace.
TraceOrder order_of(const Trace& trace, int ranks);

// True if the dependencies of the rank's events form a cycle.
bool has_cycle(const TraceRank& rank);

}  // namespace ghostrank
