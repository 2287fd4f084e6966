// What limits the step of a run that has ended, and what to do about it: from the figures of its
// result alone, each finding with those behind it.
//
// Compute, exposed communication and bubble are parts of the step. What resources need (NICs,
// links, servers) may be hidden behind compute: of these a finding says how much of the waiting
// they can explain at most, or all of their time where they are busy for kSaturated of the step.
//
// Units: seconds of the emulated cluster, per step. Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/stored_run.h"
#include "tools/text/table.h"

namespace ghostrank {

struct Cause {
  std::string key;  // for JSON: "compute", "nic", "lateness"
  std::string what;
  double seconds = 0;                // of the step that it explains
  bool at_most = false;              // some of it may be hidden behind compute
  std::vector<std::string> figures;  // those behind it, for people
  std::string remedy;                // may be empty
  double of = 0;                     // the step that this is part of; 0: that of the diagnosis
};

struct Diagnosis {
  std::optional<double> step;   // median; empty: no iteration was completed
  std::string bottleneck;       // as bottleneck_of() says
  std::vector<Cause> findings;  // by seconds, the most first
  std::string nothing;          // why there is no finding, or what the findings leave out
};

// Shares of the step below which nothing is said of what takes them.
inline constexpr double kLeastShare = 0.01;

Diagnosis diagnose(const StoredRun& run);

// The share of its step that a finding explains; empty: no step is known.
std::optional<double> share_of(const Cause& finding, const Diagnosis& diagnosis);
std::string bottleneck_text(const std::string& bottleneck);  // for people
std::string diagnosis_text(const StoredRun& run, const Diagnosis& diagnosis, const Paint& paint);
std::string diagnosis_json(const StoredRun& run, const Diagnosis& diagnosis);  // diagnosis/1

}  // namespace ghostrank
