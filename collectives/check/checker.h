// Proves a schedule before a byte moves. The checker plays all ranks at once on symbolic data:
// every element carries the multiset of contributions it was summed from. Messages pass slice by
// slice through one first-in-first-out queue per connection (channel, source, destination). No
// sender is more than `credits` messages ahead of its receiver, or sends without a permission where
// the schedule requires one. At the end every rank must hold exactly the content that schedule.h
// promises, every contribution exactly once, and every queue must be empty.
//
// The checker knows no algorithm and trusts nothing a schedule says. It reports, with rank, actor
// and step: blocks outside the buffers, ends that disagree about a message, deadlocks, connections
// with two senders, and two actors of a rank that touch one element without a message or dependency
// that orders them. An actor waits for its peers in the order in which the step lists them; a
// schedule that completes this way completes with any timing.
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
  GroupRank source = 0, destination = 0;
  std::uint64_t messages = 0, bytes = 0;
  bool operator==(const PairBytes&) const = default;
};

struct CheckReport {
  bool ok = false;
  std::string error;  // the first defect found; empty when ok
  // Location of the defect, as far as it has one; negative: unknown.
  struct Where {
    GroupRank rank = kNoRank;
    int actor = -1, step = -1;
  } at;
  std::uint64_t messages = 0, bytes = 0;
  // Length of the longest chain if every message takes one round and an actor sends and receives
  // one message per round. For unsliced schedules: the number of communication steps.
  int rounds = 0;
  std::vector<PairBytes> pairs;  // sorted by (source, destination)
};

CheckReport check(const Schedule& schedule, CheckOptions options = {});

}  // namespace ghostrank
