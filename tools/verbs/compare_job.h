// `ghostrank compare JOB --a ... --b ...`: plays variants of one job in turn and says in what they
// differ.
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
  std::optional<int> runs, max_runs, retries;
  int processes = 1;
  std::string until, margin, csv, picture, bundle, redraw;
  bool tune = false, quiet = false, allow_unfaithful = false, print_config = false, dry_run = false;
};
void add_compare_job_flags(CLI::App& app, CompareJobFlags& flags);

// True if the flags ask to play or draw a comparison of a job, or the only file is a job, whose own
// variants are played then; false: to compare results.
bool compares_job(const CompareJobFlags& flags, const std::vector<std::string>& files);

// `files` and `json` are flags of both forms of compare. Returns the exit status.
int compare_job(const Argv& argv, const CompareJobFlags& flags,
                const std::vector<std::string>& files, const std::string& json);

}  // namespace ghostrank
