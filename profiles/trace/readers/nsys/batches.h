// Calls of NCCL that were launched together, and which work of the device they launched.
//
// A call launches its kernels on its own thread before it returns; calls between ncclGroupStart and
// ncclGroupEnd launch theirs before the outermost group ends. The export does not say which kernel
// does which call of a group. Units: nanoseconds on the host, picoseconds on the device.
// Threading: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/readers/nsys/ranges.h"
#include "profiles/trace/sqlite_rows.h"
#include "profiles/trace/trace.h"

namespace ghostrank {

struct NsysBatch {
  std::uint64_t thread = 0;
  std::int64_t start = 0, end = 0;  // on the host
  std::size_t first_call = 0, calls = 0;
  bool kernels = false;               // NCCL launched some; else `first` and `last` are of copies
  Picoseconds first = -1, last = -1;  // on the device; -1: nothing was launched
  std::int64_t stream = 0;            // that of the work found first

  void extend(Picoseconds from, Picoseconds to, std::int64_t on);
};

class NsysBatches {
 public:
  // Counts the ranges in `trace` as used or left out; calls are counted as used by whoever plays
  // them. `ranges` has no memberships.
  NsysBatches(std::vector<NsysRange> ranges, Trace& trace);

  // Reads what the host launched; without it no batch has any work. `all`: also launches outside of
  // batches.
  void read_launches(SqliteFile& file, bool all, Trace& trace);

  // The batch that launched the work `correlation` of a process, or null. Only batches with calls.
  NsysBatch* launched(std::uint64_t process, std::int64_t correlation);
  // When the host launched it; -1: unknown.
  std::int64_t launched_at(std::uint64_t process, std::int64_t correlation) const;

  std::vector<NsysBatch> batches;  // by thread and start
  std::vector<NsysRange> calls;    // of all batches; each has a communicator and a size

 private:
  struct Launch {
    std::uint64_t process = 0;
    std::int64_t correlation = 0, start = 0;
    std::uint32_t batch = kNoIndex;  // kNoIndex: none with calls
  };
  const Launch* launch(std::uint64_t process, std::int64_t correlation) const;
  std::vector<Launch> launches_;  // sorted
};

}  // namespace ghostrank
