// An export of nsys, as the only file of a job. The input is the file itself, or SQL that writes
// it: damaged bytes test pages that SQLite itself accepts, damaged SQL the content of tables. Makes
// programs of the import and checks them, as trace.cpp does.
#include "profiles/error.h"
#include "profiles/trace/readers/import.h"
#include "profiles/trace/replay.h"
#include "profiles/workload/workload_check.h"
#include "tests/fuzz/sqlite_file.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::SqliteOnDisk file;
  try {
    const Trace trace = import_trace({file.with(fuzz::text_of(data, size))}, "nsys", 0);
    ++fuzz::accepted;
    const int ranks = ranks_named(trace);
    summary_of(trace, ranks);
    if (ranks > 4096) return 0;  // a short text may stand for a million ranks: slow, but right
    check_workload(replay(trace, {ranks, {}}).workload);
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
