// Stalls: times when the job as a whole stood still. A shard is quiet from its last event (a
// message or fragment that arrived, left or reached its turn, a delay that ended) or, while it
// knows of a pending delay, from the end of that delay, because computing is no stall. The job
// stands still while all shards of all processes are quiet; standing still for longer than the
// threshold is a stall.
//
//   host 0   ====....................====     = at work, computing     . quiet
//   host 1   =========...............====
//   stall             |-------------|
//
// The gaps of every shard show, after the segment, the stalls from which the job recovered. The
// pulses of every process show process 0 a stall while it lasts.
//
// Units: emulated time on the job's common clock; its zero is the start of the segment. Threading:
// plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "collectives/common/number.h"
#include "emulator/common/blob.h"
#include "profiles/job/job.h"
#include "profiles/units.h"

namespace ghostrank {

inline constexpr Picoseconds kEndless = std::numeric_limits<Picoseconds>::max();

struct Gap {  // quiet in [from, to)
  Picoseconds from = 0, to = kEndless;
};

// Returns the threshold of a stall in emulated time: the longer of 1 s of wall time and ten times
// what the longest fragment should take, but at most half of run.stall_timeout_s.
Picoseconds stall_threshold(const JobSpec& spec, double dilation);

// Returns after how much silence the others take a process for lost: 20 s, or if that is shorter
// run.stall_timeout_s plus 2 s, because process 0 should see the stall first: it knows which ranks
// are stuck.
std::chrono::milliseconds silence_of_the_lost(const RunSpec& run);

// Returns the times that lie in a gap of every shard and are longer than `threshold`. Requires the
// gaps of each shard to be in order and disjoint.
std::vector<Gap> common_gaps(const std::vector<std::vector<Gap>>& shards, Picoseconds threshold);

// The state of one process, which it sends to process 0 a few times a second.
struct Pulse {
  std::uint32_t segment = 0;  // first iteration
  bool quiet = false, ended = false;
  Picoseconds since = 0;  // quiet: since when
  std::string stuck;      // quiet: which ranks wait, in which call, for which others
  std::string to_blob() const;
  bool read(BlobReader& blob);  // false: malformed
};

// Process 0's view of all processes.
class StallWatch {
 public:
  // A process that sends no pulse for `silence` counts as quiet since its last one.
  StallWatch(std::uint32_t segment, int hosts, Picoseconds silence)
      : segment_(segment), silence_(silence), hosts_(hosts) {}

  void note(Host host, const Pulse& pulse, Picoseconds now);
  bool all_ended() const;
  // Returns since when all processes are quiet; empty: one is not.
  std::optional<Picoseconds> quiet_since(Picoseconds now) const;
  std::string who_is_stuck(Picoseconds now) const;

 private:
  struct Seen {
    Pulse pulse;
    Picoseconds heard = 0;
  };
  bool silent(const Seen& seen, Picoseconds now) const {
    return !seen.pulse.ended && now - seen.heard > silence_;
  }

  std::uint32_t segment_;
  Picoseconds silence_;
  VectorBy<Host, Seen> hosts_;
};

}  // namespace ghostrank
