// Proves a schedule before a byte moves. It plays all ranks at once on symbolic data: every element
// carries the multiset of contributions it is made of, messages pass through one first-in-first-out
// queue per connection (channel, source, destination), slice by slice, and no sender is ever more
// than `credits` messages ahead of its receiver, nor sends what has not been permitted. At the end
// every rank must hold exactly what schedule.h promises, every contribution exactly once, and every
// queue must be empty.
//
// It knows nothing of any algorithm and trusts nothing a schedule says: blocks outside the buffers,
// ends that disagree about a message, deadlocks, connections with two senders, and two actors of a
// rank that touch one element with no message or dependency ordering them are all errors, named
// with rank, actor and step. An actor waits for its peers in the order in which the step lists
// them; a schedule that gets through that way gets through whatever the timing.
//
// Units: elements and bytes. Threading: pure; cost grows with elements x messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct CheckOptions {
  bool pairs = false;  // also count bytes by (source, destination)
};

struct PairBytes {
  Rank source = 0, destination = 0;
  std::uint64_t messages = 0, bytes = 0;
  bool operator==(const PairBytes&) const = default;
};

struct CheckReport {
  bool ok = false;
  std::string error;  // empty when ok; the first thing found wrong
  // Where that is, as far as it is in one place; less than 0: not known.
  struct Where {
    Rank rank = kNoRank;
    int actor = -1, step = -1;
  } at;
  std::uint64_t messages = 0, bytes = 0;
  // The longest chain when every message takes one round and an actor sends and receives one
  // message per round: unsliced, the number of communication steps.
  int rounds = 0;
  std::vector<PairBytes> pairs;  // sorted by (source, destination)
};

CheckReport check(const Schedule& schedule, CheckOptions options = {});

}  // namespace ghostrank
