// State of a rank whose streams outlive their iteration (Program::outlives). Such a stream plays
// the rank's iteration or the one before, never an older one. RankState::events therefore keeps the
// events of three iterations: of these two, and of the one before them, because a stream that is
// behind may wait for its events.
//
// A rank whose programs carry nothing over has no such state. Threading: as RankState, one shard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/shard/ranks/rank.h"
#include "switch/assert.h"

namespace ghostrank {

inline constexpr std::size_t kIterationsAlive = 3;

// Return the program and the iteration that a stream of the rank plays.
inline const Program& program_of(const RankState& r, const StreamState& s) {
  return s.behind ? *r.carried->before : *r.program;
}
inline std::uint32_t iteration_of(const RankState& r, const StreamState& s) {
  return r.iteration - (s.behind ? 1 : 0);
}

// Returns the op's event as an index into RankState::events.
inline std::uint32_t event_of(const RankState& r, const StreamState& s, const Op& op) {
  if (!r.carried) return op.event;
  const std::size_t each = r.events.size() / kIterationsAlive;
  const std::size_t of = iteration_of(r, s) + kIterationsAlive - (op.previous ? 1 : 0);
  return static_cast<std::uint32_t>(of % kIterationsAlive * each + op.event);
}

// Returns whether a wait is for an event from before the segment, and so passes at once.
inline bool passes_at_once(const RankState& r, const StreamState& s, const Op& op) {
  if (!op.previous) return false;
  GHOSTRANK_ASSERT(r.carried != nullptr);  // ensured by check_carried()
  return iteration_of(r, s) == r.carried->first;
}

// Begins the rank's iteration at `t`: streams that have ended begin it, the others are behind.
// `before`: the program of the iteration before, unused for the `first` iteration of a segment.
void begin_carrying(RankState& r, Moment t, const Program* before, bool first);

// Called when a stream that was behind has ended the iteration before: it begins the rank's.
void catch_up(RankState& r, std::size_t stream);

// Returns when the iteration ended, and why no earlier.
EventState::Record end_of(const RankState& r);

}  // namespace ghostrank
