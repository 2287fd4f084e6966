// What a job asks to happen at given times (key `events`): marks, ranks that compute more slowly,
// links that fail or slow down, a process that dies. Time counts from the beginning of the measured
// iterations; warm-ups have no events.
//
// Units: emulated picoseconds, bits per second. Threading: plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "collectives/common/number.h"
#include "profiles/units.h"

namespace ghostrank {

struct JobEvent {
  enum class Kind : std::uint8_t { mark, slow, link, kill };
  static constexpr Picoseconds kEver = std::numeric_limits<Picoseconds>::max();
  static constexpr std::uint32_t kAlways = 0xffffffff;

  Kind kind = Kind::mark;
  std::string what;  // in words: "rank 7 x 1.5 for 2 s"; of a mark: its name
  // When: at a time or, if `iteration` is set, when that measured iteration (from 0) begins.
  Picoseconds at = 0;
  std::optional<std::uint32_t> iteration;
  // For how long, by the one or the other.
  Picoseconds lasts = kEver;
  std::uint32_t iterations = kAlways;

  std::vector<WorldRank> ranks;  // slow: whose computations take `factor` times as long
  double factor = 1;             // at least 1
  std::uint32_t cable = 0;       // link: index into SwitchGraph::cables; both directions
  double bps = 0;                // link: its rate meanwhile; 0: nothing passes
  Host host;                     // kill: the process that ends
  std::string source;            // "FILE:LINE:COL"
};

struct JobEvents {
  std::vector<JobEvent> all;  // as the job lists them
};

}  // namespace ghostrank
