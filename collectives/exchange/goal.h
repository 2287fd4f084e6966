// GOAL text, the input of LogGOPSim: what every rank sends and receives, and what each of these
// operations must wait for. A collective as a whole, or piece by piece for who has more to write.
//
//   num_ranks 2
//   rank 0 {
//   l1: send 4096b to 1 tag 0
//   l2: recv 4096b from 1 tag 0
//   l2 requires l1
//   }
//   ...
//
// Bytes are those on the wire; messages with one tag between two ranks are matched in their order.
// `calc 0` stands for local work, and for a rank or a step that has none but is waited for: what
// reducing costs is not known here. Credits have no word in GOAL and are left out; so is the own
// block of an all-to-all, which is no message.
//
// Threading: one owner; to_goal is a pure function.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// The operations of one rank as they are added.
class RankGoal {
 public:
  using Labels = std::vector<int>;  // operations, by number from 1

  int calc(std::uint64_t nanoseconds, const Labels& after);
  int send(std::uint64_t bytes, Rank to, int tag, const Labels& after);
  int receive(std::uint64_t bytes, Rank from, int tag, const Labels& after);
  void require(int label, const Labels& after);

  // What the member at `position` of a group does in a call: position p is rank members[p] of the
  // job. Returns what ends it, `after` where there is nothing.
  Labels call(const Schedule& schedule, Rank position, std::span<const Rank> members,
              const std::function<int(int channel)>& tag_of, const Labels& after);

  std::string text(Rank rank) const;  // "rank 3 {" ... "}"

 private:
  int add(const std::string& what, const Labels& after);

  int labels_ = 0;
  std::string operations_, dependencies_;
};

// A collective: the ranks of the group are those of the job, tags are channels.
std::string to_goal(const Schedule& schedule);

}  // namespace ghostrank
