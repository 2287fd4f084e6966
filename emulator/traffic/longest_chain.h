// How many messages of a call must wait for each other, whatever the network's rates are: on an
// idle network of unlimited rates the call takes so many latencies. A sender's permission to send
// (Posting) and credits are not counted.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <optional>

#include "collectives/schedule.h"

namespace ghostrank {

// Whether an actor's later loops (Actor::loop) wait for its earlier ones. They do, but on a link
// that many channels share, some send while others wait, and so only the first loop's latencies
// show beside the time of the bytes.
enum class Loops { all, first };

// Messages on the longest chain of a call.
int longest_chain(const Schedule& schedule, Loops loops);

// As longest_chain(), of the actors of one channel alone, that of rank 0's first: at most as long.
// nullopt: they have more than `most` steps.
std::optional<int> chain_of_a_channel(const Schedule& schedule, std::size_t most, Loops loops);

}  // namespace ghostrank
