// A sweep's results: a row for each point of the grid. The CSV file is also what a sweep resumes
// from.
//
// clang-format off
//   <key> ... , step_time_s, wire_bytes, messages, exposed_s, compute_s, faithful, seed, version, config_hash, error, samples_per_s
// clang-format on
//
// Units: seconds and bytes of the emulated cluster, per step (medians of the measured iterations).
// Threading: pure functions of their arguments and of files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/sweep/grid.h"

namespace ghostrank {

struct SweepRow {
  bool played = false;  // false: not yet; the figures are meaningless where `error` is not empty
  double step_seconds = 0, wire_bytes = 0, messages = 0, exposed_seconds = 0, compute_seconds = 0;
  std::optional<double> samples_per_second;
  std::string faithful;  // "true", "false" or "modelled" (virtual time)
  std::string seed, version, config_hash;
  std::string error;

  bool good() const { return played && error.empty(); }
};

struct Sweep {
  std::string job;  // its file's name, for titles
  SweepGrid grid;
  std::vector<SweepRow> rows;  // by point
};

// Fills the figures of a row from what the point's run wrote with --json; where that is of another
// job than the row's config_hash, the error. Throws Error(environment) when the file is no such
// result.
void read_figures(SweepRow& row, const std::string& result_file);

// Rows that have been played, in the order of the grid.
std::string sweep_csv(const Sweep& sweep);

// The same rows with the job's name and the grid (schema ghostrank/sweep/1); figures that a point
// lacks are null.
std::string sweep_json(const Sweep& sweep);

// Takes from a CSV that sweep_csv() wrote the rows whose configuration, seed and version are those
// of the sweep's rows, if they have no error; returns how many. A missing or empty file has none.
// Throws Error(usage) when the file is something else, Error(environment) when it cannot be read.
std::size_t resume(Sweep& sweep, const std::string& csv_file);

// Throughput (or the step time, where samples are not counted): a row for each combination of the
// first axes, a column for each value of the last one.
std::string sweep_text(const Sweep& sweep);
std::string sweep_svg(const Sweep& sweep);

}  // namespace ghostrank
