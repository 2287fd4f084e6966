// `ghostrank compare JOB --a ... --b ...`: plays variants of one job in turns and says what
// differs.
//
// Threading: main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/arguments.h"

namespace ghostrank {

struct CompareJobFlags {
  std::vector<std::string> a, b, variants, overrides, expect;
  std::optional<std::uint64_t> seed;
  std::optional<int> runs, max_runs;
  int processes = 1;
  std::string until, margin, csv, picture, bundle, redraw;
  bool quiet = false, allow_unfaithful = false;
};
void add_compare_job_flags(CLI::App& app, CompareJobFlags& flags);

// Whether the flags ask for a job to be compared, or drawn again, and not for results.
bool compares_job(const CompareJobFlags& flags);

// `files` and `json` are what compare takes in both forms. Returns the exit status.
int compare_job(const Argv& argv, const CompareJobFlags& flags,
                const std::vector<std::string>& files, const std::string& json);

}  // namespace ghostrank
