// Step times of a user's own runs: a CSV file, one run a line, the names of its columns in the
// first.
//
//   seconds   the measured step, of the real cluster
//   job       the run's job file, from the CSV's folder; not needed where all runs share one
//   plan      keys of `parallel` with their values, blanks between them: tp=8 pp=4 micro_batch=2
//   any key   its value in this run: model, cluster.nodes, collectives.library, ...
//
// Empty cells say nothing, nor do blanks around a cell; blank lines and lines that begin with # are
// skipped. Lines of the same
// job are one run that was measured several times.
//
// Units: seconds. Errors: Error(usage) "FILE:LINE: what; what to do", also for lines of one job
// whose times differ by more than kMostSpread, and for runs on different devices.
// Threading: pure functions of files and the environment.
#pragma once

#include <string>
#include <vector>

#include "profiles/load/load.h"

namespace ghostrank {

struct MeasuredRun {
  std::vector<int> lines;  // of the file
  std::string name;        // the cells in which it differs from other runs
  LoadedJob job;           // in virtual time
  double seconds = 0;      // the median, where there are several
};

inline constexpr double kMostSpread = 1.1;  // longest over shortest time of one job

// `job`: the job file of lines that name none; may be empty. `overrides`: "path=value", for all
// lines; a line's own cells come after them.
std::vector<MeasuredRun> read_measured_runs(const std::string& csv, const std::string& job,
                                            const std::vector<std::string>& overrides);

}  // namespace ghostrank
