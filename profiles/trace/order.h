// The order in which the events of a trace can be played: no dependency contradicts it, the members
// of a communicator make its calls in the same order, and nothing is received before it was sent.
//
// Which call is which: the k-th of a rank in a communicator is the k-th of every other member, by
// each rank's own order (dependencies first, then start times, then the order of the file). The
// k-th send from one rank to another with a tag is the k-th receive of that tag. Threading: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/trace.h"

namespace ghostrank {

struct TraceOrder {
  std::vector<std::vector<std::uint32_t>> sequence;  // by given rank: events
  // By given rank and event: messages of one lane between two ranks are received in the order in
  // which they are sent. Empty: all are of lane 0.
  std::vector<std::vector<std::uint16_t>> lane;
  std::uint16_t lanes = 1;
  // By given rank and event: number of a collective in its communicator.
  std::vector<std::vector<std::uint32_t>> call;
};

// Throws Error(usage) with file and event for cycles, calls that do not match, and messages that
// nobody sends or receives. Only what ranks of the trace do with each other is matched.
TraceOrder order_of(const Trace& trace, int ranks);

// Whether the events of a rank depend on themselves.
bool has_cycle(const TraceRank& rank);

}  // namespace ghostrank
