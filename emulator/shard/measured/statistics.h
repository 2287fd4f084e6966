// What one shard counts during a segment.
//
// Units: as the names say; Picoseconds are emulated. Threading: plain values; the shard's thread
// owns them while it plays.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/agents/helper_count.h"
#include "emulator/common/moment.h"
#include "emulator/common/summed_time.h"
#include "emulator/network/link_times.h"
#include "emulator/network/links.h"
#include "emulator/result/histogram.h"
#include "emulator/result/result.h"
#include "emulator/result/sampled_seconds.h"
#include "emulator/shard/measured/stalls.h"
#include "emulator/traffic/ledger.h"

namespace ghostrank {

struct RowStats {
  std::uint64_t calls = 0, bytes = 0;
  SummedTime total, total_late;
  // Of the calls seen by group rank 0: their durations, and these without the lateness that this
  // machine may have added. The same calls are kept of both.
  SampledSeconds seconds, without_lateness;
};

struct ShardStats {
  Histogram lateness_ns;  // lateness of compute delays, wall time
  Moment end;             // of the last iteration of the last rank
  Picoseconds until = 0;  // what is counted happened by then: `end`, or later after a stop
  double wall_seconds = 0, idle_seconds = 0, cpu_seconds = 0;
  double run_queue_seconds = 0;           // in the kernel's run queue; < 0: unreadable
  double held_up_seconds = 0;             // work was due and the thread did not run
  double taken_seconds = 0;               // of that, while it was at work
  Picoseconds wall_behind = 0;            // clock past the last rank's ideal end
  Picoseconds paced = 0, pace_error = 0;  // pace_error: signed growth of lateness in busy periods
  std::uint64_t events = 0, messages = 0;
  LedgerCell to_outside, from_outside;  // of a slice: data that is modelled
  // Virtual time: windows, and those in which it had anything to do; messages to other shards.
  std::uint64_t windows = 0, busy_windows = 0, handed = 0;
  std::uint64_t fluids = 0;  // collectives that travelled as flows
  std::uint64_t checked = 0, wrong = 0;
  std::uint64_t spans_dropped = 0;
  PacketCounts packets;
  SwitchTroubles troubles;
  // Of all links of the cluster, counted for those that this shard plays; empty: the job has no
  // links.
  std::vector<LinkCount> links;
  LinkTimes link_times;  // if asked for
  std::vector<RowStats> rows;
  std::vector<HelperCount> helpers;  // those that heard anything
  std::vector<Gap> gaps;  // real time: quiet longer than the stall threshold; the last is endless
};

}  // namespace ghostrank
