// GOAL text, the input of LogGOPSim: the sends and receives of every rank, and the operations that
// each of them must wait for. Writes a whole collective, or one rank's part for a caller that
// writes more.
//
//   num_ranks 2
//   rank 0 {
//   l1: send 4096b to 1 tag 0
//   l2: recv 4096b from 1 tag 0
//   l2 requires l1
//   }
//   ...
//
// What follows a send within a call waits for the start of the send (irequires), not for its end.
// Bytes are bytes on the wire. Messages with one tag between two ranks match in order. `calc 0`
// stands for local work, whose cost is not known here, and for a rank or a step without work that
// others wait for. Operations of a cpu take turns; messages, and what stands between them, are on
// cpu 0, which goes unsaid. GOAL cannot express credits, so they are left out. A rank's own block
// in an all-to-all is no message.
//
// Threading: one owner; to_goal is a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// Collects the operations of one rank.
class RankGoal {
 public:
  using Labels = std::vector<int>;  // numbers of operations, from 1

  int calc(std::uint64_t nanoseconds, const Labels& after, std::size_t cpu = 0);
  int send(std::uint64_t bytes, WorldRank to, int tag, const Labels& after);
  int receive(std::uint64_t bytes, WorldRank from, int tag, const Labels& after);
  // `label` waits for the end of `other`, or for its start only (irequires).
  void require(int label, int other, bool its_start = false);

  // Adds the part of the member at `position` of a group in a call. Position p is rank members[p]
  // of the job. Returns the last operations of the part; `after` if the part has none.
  Labels call(const Schedule& schedule, GroupRank position, std::span<const WorldRank> members,
              const std::function<int(int channel)>& tag_of, const Labels& after);

  std::string text(WorldRank rank) const;  // "rank 3 {" ... "}"

 private:
  int add(const std::string& what, const Labels& after);

  int labels_ = 0;
  std::string operations_, dependencies_;
};

// A whole collective: group ranks become job ranks, channels become tags.
std::string to_goal(const Schedule& schedule);

}  // namespace ghostrank
