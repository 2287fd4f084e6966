#include "emulator/warmup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace ghostrank {
namespace {

constexpr double kLookSeconds = 1;  // wall, of a warm-up; less says little about a shared machine
constexpr double kLongLook = 10;    // wall: longer warm-ups are not repeated for a small gain
constexpr std::size_t kMostLongWarmUps = 4;
constexpr double kShortLook = 0.5;  // share of kLookSeconds, if a step was shorter than expected
constexpr int kMostIterations = 100'000;  // limit for min_seconds

// What a new dilation aims at. The aims are well below the limits of `faithful`, because the same
// work can be three times as late in a slow minute of a shared machine.
constexpr double kAimCritical = 0.004, kAimRateError = 0.004, kAimRunQueue = 0.005, kAimBusy = 0.7;
constexpr double kCloseCritical = 0.005;  // a faithful warm-up above this is too close to the limit
constexpr double kSaturated = 0.95;  // share of the loop's time; beyond it the backlog is unknown
constexpr double kLeastFactor = 1.25, kMostFactor = 4;
constexpr double kMuchRoom = 0.5, kFill = 0.8;  // shares of the aim: speed up below 0.5, to 0.8

// How much of the aims a warm-up used; above 1 it is the factor by which to raise the dilation.
// Lateness counts by its square root because it falls faster than the dilation grows: it is what
// remains of one burst when the next one comes.
double load_of(const Fidelity& f) {
  return std::max({std::sqrt(f.critical_lateness / kAimCritical), f.rate_error / kAimRateError,
                   f.run_queue_wait / kAimRunQueue, f.loop_busy / kAimBusy,
                   f.loop_busy > kSaturated ? kMostFactor : 0});
}

bool close_to_the_limit(const Fidelity& f) {
  return f.faithful && f.critical_lateness > kCloseCritical;
}

bool good(const WarmUp& w) { return w.fidelity.faithful && !close_to_the_limit(w.fidelity); }

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", share * 100);
  return text;
}

std::string why_slower(const Fidelity& f) {
  if (!f.faithful) return f.reason;
  return "lateness on the critical path " + percent(f.critical_lateness) +
         " in the warm-up, too close to the limit";
}

double planned_wall_seconds(const RunWindow& window, double step_wall_seconds) {
  return iterations_to_measure(window, step_wall_seconds) * step_wall_seconds;
}

// Iterations of another warm-up: about kLookSeconds, but no more than are measured.
int look_iterations(const RunWindow& window, double step_wall_seconds) {
  if (step_wall_seconds <= 0) return window.warmup;
  const double wanted = std::ceil(kLookSeconds / step_wall_seconds);
  const int most = iterations_to_measure(window, step_wall_seconds);
  return std::max(window.warmup, static_cast<int>(std::min<double>(wanted, most)));
}

bool long_enough(const WarmUp& w, const RunWindow& window) {
  return w.step_seconds <= 0 || w.wall_seconds() >= kShortLook * kLookSeconds ||
         w.iterations >= iterations_to_measure(window, w.step_seconds * w.dilation);
}

// The latest warm-up at a dilation decides about it, so a passing disturbance is not held against
// it.
const WarmUp* latest_at(std::span<const WarmUp> played, double dilation) {
  const auto found = std::find_if(played.rbegin(), played.rend(),
                                  [&](const WarmUp& w) { return w.dilation == dilation; });
  return found == played.rend() ? nullptr : &*found;
}

// The lowest dilation above `above` that was good; below it, the highest under `below` that was
// not.
std::optional<double> lowest_good(std::span<const WarmUp> played, double above) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const WarmUp& w : played)
    if (w.dilation > above && good(*latest_at(played, w.dilation)))
      lowest = std::min(lowest, w.dilation);
  if (!std::isfinite(lowest)) return std::nullopt;
  return lowest;
}

double highest_bad(std::span<const WarmUp> played, double below) {
  double highest = 0;
  for (const WarmUp& w : played)
    if (w.dilation < below && !good(*latest_at(played, w.dilation)))
      highest = std::max(highest, w.dilation);
  return highest;
}

// Without the waiting for cores that other programs cause.
Fidelity alone(Fidelity f) {
  f.run_queue_wait = 0;
  return f;
}

// Whether waiting for a core is hardly less than it was at a quarter of the dilation: then other
// programs take the cores anyway. (Otherwise a thread that wakes up more rarely waits more rarely.)
bool waits_as_before(std::span<const WarmUp> played) {
  const WarmUp& last = played.back();
  return std::any_of(played.begin(), played.end(), [&](const WarmUp& w) {
    const Fidelity& before = latest_at(played, w.dilation)->fidelity;
    return 4 * w.dilation <= last.dilation &&
           last.fidelity.run_queue_wait > kFill * before.run_queue_wait;
  });
}

// The warm-up to go by if none was good: a faithful one, else the least loaded; among about equally
// loaded ones the smallest dilation.
const WarmUp& best_of(std::span<const WarmUp> played) {
  const WarmUp* best = nullptr;
  const auto better = [](const WarmUp& a, const WarmUp& b) {
    if (a.fidelity.faithful != b.fidelity.faithful) return a.fidelity.faithful;
    const double of_a = load_of(a.fidelity), of_b = load_of(b.fidelity);
    return a.dilation > b.dilation ? of_a < kFill * of_b : of_a * kFill <= of_b;
  };
  for (const WarmUp& w : played)
    if (&w == latest_at(played, w.dilation) && (best == nullptr || better(w, *best))) best = &w;
  return *best;
}

double look_wall_seconds(const RunWindow& window, double step_wall_seconds) {
  return look_iterations(window, step_wall_seconds) * step_wall_seconds;
}

// A smaller dilation worth trying after the last warm-up, which was good; if none is, its own.
double faster(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp& last = played.back();
  const double load = load_of(last.fidelity), bad = highest_bad(played, last.dilation);
  if (load > kMuchRoom) return last.dilation;
  double target = last.dilation * std::max(load / kFill, 1 / kMostFactor);
  if (bad > 0) target = std::max(target, std::sqrt(bad * last.dilation));
  target = std::max(std::ceil(target), window.least_dilation);
  if (target * kLeastFactor > last.dilation) return last.dilation;
  const double step = last.step_seconds;
  const double cost = look_wall_seconds(window, step * target);
  const double saved =
      planned_wall_seconds(window, step * last.dilation) * (1 - target / last.dilation);
  return saved > cost ? target : last.dilation;
}

// What to do after a last warm-up that was not good, with no better dilation known.
NextPlay slower(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp& last = played.back();
  const Fidelity& f = last.fidelity;
  const auto target_for = [&](const Fidelity& of) {
    return std::ceil(last.dilation * std::clamp(load_of(of), kLeastFactor, kMostFactor));
  };
  const auto costly = [&](double dilation) {
    return look_wall_seconds(window, last.step_seconds * dilation) > kLongLook;
  };
  double target = target_for(f);
  const bool only_waits = !f.faithful && load_of(alone(f)) <= 1;
  if (only_waits && (costly(target) || waits_as_before(played))) target = last.dilation;
  if (costly(target)) target = std::min(target, target_for(alone(f)));
  if (target == last.dilation ||
      played.size() >= (costly(target) ? kMostLongWarmUps : kMostWarmUps)) {
    const double best = best_of(played).dilation;
    return {false, best, 0, best < last.dilation ? "slowing down does not help: " + f.reason : ""};
  }
  // A little above a faithful dilation: not worth another long warm-up.
  if (f.faithful && costly(target)) return {false, target, 0, why_slower(f)};
  return {true, target, look_iterations(window, last.step_seconds * target), why_slower(f)};
}

}  // namespace

int iterations_to_measure(const RunWindow& window, double step_wall_seconds) {
  if (window.min_seconds <= 0 || step_wall_seconds <= 0) return window.iterations;
  const double wanted = std::ceil(window.min_seconds / step_wall_seconds);
  return std::max(window.iterations, static_cast<int>(std::min<double>(wanted, kMostIterations)));
}

NextPlay after_warm_ups(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp& last = played.back();
  const bool over = played.size() >= kMostWarmUps;
  const auto again_at = [&](double dilation, const std::string& reason) {
    return NextPlay{true, dilation, look_iterations(window, last.step_seconds * dilation), reason};
  };
  const bool nothing_to_learn = window.keep_dilation && window.min_seconds <= 0;
  if (!over && !nothing_to_learn && !long_enough(last, window)) return again_at(last.dilation, "");
  if (window.keep_dilation) return {false, last.dilation, 0, ""};
  const Fidelity& f = last.fidelity;
  if (good(last)) {
    const double target = over ? last.dilation : faster(played, window);
    if (target == last.dilation) return {false, target, 0, ""};
    return again_at(target, "loop busy " + percent(f.loop_busy) +
                                ", lateness on the critical path " + percent(f.critical_lateness) +
                                " in the warm-up, far below the limits");
  }
  if (const auto above = lowest_good(played, last.dilation))
    return {false, *above, 0, why_slower(f)};
  return slower(played, window);
}

}  // namespace ghostrank
