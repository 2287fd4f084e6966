// Stalls: the job as a whole stood still. A shard is quiet from its last event (a message or
// fragment that arrived, left or had its turn, a delay that ended) or, while it knows of a delay
// that is still to end, from the end of that delay: computing is no stall. The job stalls while
// all shards of all processes are quiet; a stall is what lasts longer than the threshold.
//
//   host 0   ====....................====     = at work, computing     . quiet
//   host 1   =========...............====
//   stall             |-------------|
//
// What recovered is known afterwards, from the gaps of every shard. What does not end is seen by
// process 0 while it lasts, from the pulses of every process.
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

#include "emulator/common/blob.h"
#include "profiles/job/job.h"
#include "profiles/units.h"

namespace ghostrank {

inline constexpr Picoseconds kEndless = std::numeric_limits<Picoseconds>::max();

struct Gap {  // quiet in [from, to)
  Picoseconds from = 0, to = kEndless;
};

// Longer than this is a stall: one second of this machine, or ten times what the longest piece of a
// message should take. Less where the job wants to end earlier than that.
Picoseconds stall_threshold(const JobSpec& spec, double dilation);

// After how long a process that says nothing is lost to the others: 20 s, but soon after the
// time-out of a stall where that is shorter, which process 0 should see first, as it knows who is
// stuck.
std::chrono::milliseconds silence_of_the_lost(const RunSpec& run);

// What lies in a gap of every one of `shards` and is longer than `threshold`. The gaps of a shard
// are in order and apart.
std::vector<Gap> common_gaps(const std::vector<std::vector<Gap>>& shards, Picoseconds threshold);

// How one process stands, told to process 0 a few times a second.
struct Pulse {
  std::uint32_t segment = 0;  // first iteration
  bool quiet = false, ended = false;
  Picoseconds since = 0;  // quiet: since when
  std::string stuck;      // quiet: which ranks wait, in what, for whom
  std::string to_blob() const;
  bool read(BlobReader& blob);  // false: malformed
};

// Process 0's view of all.
class StallWatch {
 public:
  // A process that was not heard of for `silence` counts as quiet since then.
  StallWatch(std::uint32_t segment, int hosts, Picoseconds silence)
      : segment_(segment), silence_(silence), hosts_(static_cast<std::size_t>(hosts)) {}

  void note(int host, const Pulse& pulse, Picoseconds now);
  bool all_ended() const;
  // Since when nothing has moved anywhere; empty: something does.
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
  std::vector<Seen> hosts_;
};

}  // namespace ghostrank
