#include "tools/compare/ab/tune.h"

#include <algorithm>
#include <array>
#include <optional>

#include "profiles/error.h"
#include "profiles/median.h"
#include "profiles/planners/plan.h"
#include "tools/quiet_play.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

using Assignments = std::vector<std::string>;

constexpr double kWorthwhile = 0.001;  // of the best step time so far

struct Knob {
  std::string key;
  std::vector<const char*> values;
};

const std::array kKnobs{
    Knob{"collectives.channels", {"1", "2", "4", "8"}},
    Knob{"collectives.slice", {"0", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB"}},
};

// Settings that remove chance, and work that takes real time but changes no step time.
const std::array kQuiet{
    "fabric.kind=virtual",        "run.jitter=0",          "events=[]",
    "run.verify=false",           "fabric.packets.loss=0", "fabric.packets.duplicates=0",
    "fabric.packets.reordering=0"};

bool is_chosen(const LoadedJob& job, const std::string& key) {
  return std::ranges::any_of(job.entries, [&](const ConfigEntry& entry) {
    return entry.path == key && entry.origin == "-s";
  });
}

// Every combination of the knobs that the command line leaves open; one empty one if it sets all.
std::vector<Assignments> candidates_for(const LoadedJob& job) {
  std::vector<Assignments> candidates{{}};
  for (const Knob& knob : kKnobs) {
    if (is_chosen(job, knob.key)) continue;
    std::vector<Assignments> longer;
    for (const Assignments& settings : candidates)
      for (const char* value : knob.values) {
        longer.push_back(settings);
        longer.back().push_back(knob.key + "=" + value);
      }
    candidates = std::move(longer);
  }
  return candidates;
}

std::optional<double> step_unless_refused(const StepWith& step_with, const Assignments& more) {
  try {
    return step_with(more);
  } catch (const Error& error) {
    if (error.exit_code() != static_cast<int>(ErrorKind::usage)) throw;
    return std::nullopt;
  }
}

}  // namespace

Tuning tune_variant(const LoadedJob& job, const StepWith& step_with) {
  Tuning tuning;
  const std::vector<Assignments> candidates = candidates_for(job);
  if (candidates.size() == 1) return tuning;
  tuning.own = tuning.best = step_with({});
  for (const Assignments& candidate : candidates) {
    const std::optional<double> step = step_unless_refused(step_with, candidate);
    if (!step) continue;
    ++tuning.played;
    if (*step >= tuning.best * (1 - kWorthwhile)) continue;
    tuning.best = *step;
    tuning.settings = candidate;
  }
  return tuning;
}

std::string words_of(const Tuning& tuning) {
  if (tuning.played == 0) return "not tuned: its slicing and channels are chosen, or refused";
  std::string text =
      "tuned in virtual time, " + std::to_string(tuning.played) + " pairs of slices and channels: ";
  if (tuning.settings.empty()) return text + "the job's own are as fast as any";
  for (const std::string& setting : tuning.settings) text += setting + " ";
  return text + "is fastest, " + significant(tuning.own / tuning.best, 4) +
         " times as fast as the job's own";
}

double virtual_step(const std::string& job, Assignments overrides) {
  overrides.insert(overrides.end(), kQuiet.begin(), kQuiet.end());
  LoadedJob loaded = load_job(job, overrides);
  loaded.spec.run.end = {};  // without chance a step is like the next
  const Result result = play_quietly(loaded, plan_workload(loaded.spec));
  std::vector<double> steps;
  for (const IterationReport& iteration : result.iterations) steps.push_back(iteration.seconds);
  return median(std::move(steps));
}

}  // namespace ghostrank
