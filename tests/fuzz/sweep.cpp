// A sweep's grid (the first line) and the CSV from which it resumes (the rest). Rows that are taken
// from a CSV are written out as they were read.
#include <string>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"
#include "tools/sweep/rows.h"

namespace {

// Number of rows that `sweep` takes from a CSV that was written for it, which it must not refuse.
std::size_t resume_own(ghostrank::Sweep& sweep, const std::string& csv_file) {
  try {
    return resume(sweep, csv_file);
  } catch (const ghostrank::Error&) {
    ghostrank::fuzz::require(false);
    return 0;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  constexpr std::size_t kFewPoints = 1000;
  static const fuzz::MemoryFile file;
  const std::string text(fuzz::text_of(data, size));
  const std::size_t end = text.find('\n');
  try {
    Sweep sweep{"job", parse_grid(text.substr(0, end)), {}};
    if (sweep.grid.points() > kFewPoints) return 0;
    SweepRow row;
    row.seed = "1", row.version = "v", row.config_hash = "c";
    sweep.rows.assign(sweep.grid.points(), row);
    const std::size_t taken =
        resume(sweep, file.with(end == std::string::npos ? "" : text.substr(end + 1)));
    fuzz::require(taken <= sweep.rows.size());
    Sweep again = sweep;
    for (SweepRow& one : again.rows) one = row;
    fuzz::require(resume_own(again, file.with(sweep_csv(sweep))) == taken);
    fuzz::require(sweep_csv(again) == sweep_csv(sweep));
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
