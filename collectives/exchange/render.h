// A schedule for people and for other programs: what one rank does, step by step.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

// A table: one line per step of each of the rank's actors, steps without a peer left out.
std::string picture(const Schedule& schedule, Rank rank);

// {"sends": [{"channel": 0, "peer": 4, "messages": [[bytes, repeat], ...]}], "recvs": [...]}: the
// ordered messages per channel and peer, run-length encoded, zero-byte messages kept; connections
// in ascending order of channel and peer.
std::string to_json(const Schedule& schedule, Rank rank);

}  // namespace ghostrank
