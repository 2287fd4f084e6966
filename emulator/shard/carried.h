// What a rank keeps where streams outlive their iteration (Program::outlives). Such a stream plays
// the rank's iteration or the one before, never an older one. So events of three iterations are
// alive: of these two, and of the one before them, which a stream that is behind may wait for.
//
// Ranks whose programs carry nothing over have no such state and do none of this. Threading: as
// RankState, one shard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/common/assert.h"
#include "emulator/shard/rank.h"

namespace ghostrank {

inline constexpr std::size_t kIterationsAlive = 3;

// The program and the iteration that a stream of the rank plays.
inline const Program& program_of(const RankState& r, const StreamState& s) {
  return s.behind ? *r.carried->before : *r.program;
}
inline std::uint32_t iteration_of(const RankState& r, const StreamState& s) {
  return r.iteration - (s.behind ? 1 : 0);
}

// Index into RankState::events.
inline std::uint32_t event_of(const RankState& r, const StreamState& s, const Op& op) {
  if (!r.carried) return op.event;
  const std::size_t each = r.events.size() / kIterationsAlive;
  const std::size_t of = iteration_of(r, s) + kIterationsAlive - (op.previous ? 1 : 0);
  return static_cast<std::uint32_t>(of % kIterationsAlive * each + op.event);
}

// Whether a wait is for what came before the segment.
inline bool passes_at_once(const RankState& r, const StreamState& s, const Op& op) {
  if (!op.previous) return false;
  GHOSTRANK_ASSERT(r.carried != nullptr);  // check_carried()
  return iteration_of(r, s) == r.carried->first;
}

// Begins the rank's iteration at `t`, after one of program `before`, which is nothing to the
// `first` of a segment: streams that have ended begin it, the others are behind.
void begin_carrying(RankState& r, Moment t, const Program* before, bool first);

// A stream that was behind has ended the iteration before, and begins the rank's.
void catch_up(RankState& r, std::size_t stream);

// When the streams that end with the iteration did, and when it ended itself.
struct IterationEnd {
  Moment own, all;
};
IterationEnd end_of(const RankState& r);

}  // namespace ghostrank
