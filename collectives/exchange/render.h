// Prints a schedule for people and for other programs: one rank's steps, one by one.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// A table with one line per step of each of the rank's actors; omits steps without a peer.
std::string picture(const Schedule& schedule, GroupRank rank);

// The messages of a connection in order, run-length encoded: (bytes, repeat). Zero-byte messages
// are kept.
using MessageRuns = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
using RunsByConnection = std::map<std::pair<int, GroupRank>, MessageRuns>;  // by (channel, peer)
struct RankMessages {
  RunsByConnection sends, recvs;
};
RankMessages messages_of(const Schedule& schedule, GroupRank rank);

}  // namespace ghostrank
