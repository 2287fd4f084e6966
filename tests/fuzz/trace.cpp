// A trace of the format TRACE_FORMAT, as the only file of a job of eight ranks: read, ordered, made
// into programs, and checked as a job's programs are.
#include <algorithm>

#include "profiles/error.h"
#include "profiles/trace/readers/import.h"
#include "profiles/trace/replay.h"
#include "profiles/workload/workload_check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  try {
    const Trace trace = import_trace({file.with(fuzz::text_of(data, size))}, TRACE_FORMAT, 8);
    ++fuzz::accepted;
    const int ranks = knows_ranks(trace) ? ranks_named(trace) : 8;
    summary_of(trace, ranks);
    if (ranks > 4096) return 0;  // a short text may stand for millions of ranks: slow, but right
    const auto cost = [](double flops, double bytes) {
      return static_cast<Picoseconds>(std::clamp(flops + bytes, 0.0, 1e15));
    };
    check_workload(replay(trace, {ranks, cost}).workload);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
