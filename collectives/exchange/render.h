// Prints a schedule for people and for other programs: one rank's steps, one by one.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

// A table with one line per step of each of the rank's actors; omits steps without a peer.
std::string picture(const Schedule& schedule, GroupRank rank);

// {"sends": [{"channel": 0, "peer": 4, "messages": [[bytes, repeat], ...]}], "recvs": [...]}: the
// ordered messages per channel and peer, run-length encoded, zero-byte messages kept; connections
// in ascending order of channel and peer.
std::string to_json(const Schedule& schedule, GroupRank rank);

}  // namespace ghostrank
