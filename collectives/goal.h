// A collective as GOAL text, the input of LogGOPSim: what every rank sends and receives, and what
// each of these operations must wait for.
//
//   num_ranks 2
//   rank 0 {
//   l1: send 4096b to 1 tag 0
//   l2: recv 4096b from 1 tag 0
//   l2 requires l1
//   }
//   ...
//
// Bytes are those on the wire; the tag is the channel, so messages with one tag between two ranks
// are matched in their order. `calc 0` stands for local work, and for a rank or a step that has
// none but is waited for: what reducing costs is not known here. Credits have no word in GOAL and
// are left out; so is the own block of an all-to-all, which is no message.
//
// Threading: pure function.
#pragma once

#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

std::string to_goal(const Schedule& schedule);

}  // namespace ghostrank
