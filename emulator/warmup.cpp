#include "emulator/warmup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ghostrank {
namespace {

constexpr double kLookSeconds = 1;  // wall, of a warm-up; less says little on a shared machine
constexpr double kLongLook = 10;    // wall: longer warm-ups are not repeated for a small gain
constexpr double kMostSearch = 40;  // wall: warm-ups may exceed the measured time by this much
constexpr std::size_t kMostLongWarmUps = 4;
constexpr double kMostAgain = 30;  // wall: iterations that last longer are measured once
constexpr int kMostMeasured = 5;
constexpr double kShortLook = 0.5;  // share of kLookSeconds, if a step was shorter than expected
constexpr int kMostIterations = 100'000;  // limit for min_seconds

// A larger dilation aims at these values, well below the limits of `faithful`.
constexpr double kAimCritical = 0.006, kAimRateError = 0.004, kAimRunQueue = 0.005, kAimBusy = 0.7;

// Lateness on the critical path, as a share of the step. `good`: at most this in a good warm-up;
// `aim`: target of a smaller dilation. Near the limit of `faithful`, because lateness may fall only
// as fast as the dilation grows: half the limit would mean twice the least dilation. The same work
// can be three times as late in a slow minute of a shared machine, so iterations that are too long
// to be measured again get more room (kMoreRoom).
struct Room {
  double good, aim;
};
constexpr Room kRoom{0.008, 0.0075}, kMoreRoom{0.005, 0.004};
constexpr double kCloseBusy = 0.75;  // a faithful warm-up above this is too close to the limit
constexpr double kLittle = 2.5;      // a load up to this missed by little
constexpr double kSaturated = 0.95;  // share of the loop's time; beyond it the backlog is unknown
constexpr double kLeastFactor = 1.25, kMostFactor = 4;
constexpr double kNear = 1.15;  // a good dilation at most this factor above a bad one is the least
constexpr double kSpare = 1.1;  // factor by which it is then raised if nothing is measured again
constexpr double kLessHelp = 0.8;

// How much of the aims a warm-up used; above 1 it is the factor by which to raise the dilation.
// Lateness counts by its square root because it falls faster than the dilation grows: it is the
// backlog of one burst that is left when the next one comes.
double load_of(const Fidelity& f, const RunWindow& window) {
  return std::max({std::sqrt(f.critical_lateness / kAimCritical), f.rate_error / kAimRateError,
                   window.network ? f.run_queue_wait / kAimRunQueue : 0, f.loop_busy / kAimBusy,
                   f.loop_busy > kSaturated ? kMostFactor : 0});
}

// Two digits are enough, and easy to read: 1.2, 9.6, 13, 240.
double rounded_up(double dilation) {
  if (dilation <= 9.9) return std::ceil(10 * dilation - 1e-9) / 10;
  const double unit = std::pow(10, std::floor(std::log10(dilation)) - 1);
  return std::ceil(dilation / unit - 1e-9) * unit;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", share * 100);
  return text;
}

double planned_wall_seconds(const RunWindow& window, double step_wall_seconds) {
  return iterations_to_measure(window, step_wall_seconds) * step_wall_seconds;
}

// Whether the measured iterations take too long, at that speed, to be measured again.
bool measured_once(const RunWindow& window, double step_wall_seconds) {
  return planned_wall_seconds(window, step_wall_seconds) > kMostAgain;
}

Room room_of(const WarmUp& w, const RunWindow& window) {
  return measured_once(window, w.step_seconds * w.dilation) ? kMoreRoom : kRoom;
}

bool good(const WarmUp& w, const RunWindow& window) {
  return w.fidelity.faithful && w.fidelity.critical_lateness <= room_of(w, window).good &&
         w.fidelity.loop_busy <= kCloseBusy;
}

std::string why_slower(const WarmUp& w, const RunWindow& window) {
  const Fidelity& f = w.fidelity;
  if (!f.faithful) return f.reason;
  if (f.critical_lateness > room_of(w, window).good)
    return "lateness on the critical path " + percent(f.critical_lateness) +
           " in the warm-up, too close to the limit";
  return "loop busy " + percent(f.loop_busy) + " in the warm-up, too close to the limit";
}

// Iterations of another warm-up: about kLookSeconds, but no more than are measured.
int look_iterations(const RunWindow& window, double step_wall_seconds) {
  const int least = std::max(window.warmup, window.look);
  if (step_wall_seconds <= 0) return least;
  const double wanted = std::ceil(kLookSeconds / step_wall_seconds);
  const int most = iterations_to_measure(window, step_wall_seconds);
  return std::max(least, static_cast<int>(std::min<double>(wanted, most)));
}

double look_wall_seconds(const RunWindow& window, double step_wall_seconds) {
  return look_iterations(window, step_wall_seconds) * step_wall_seconds;
}

bool long_enough(const WarmUp& w, const RunWindow& window) {
  return w.step_seconds <= 0 || w.wall_seconds() >= kShortLook * kLookSeconds ||
         w.iterations >= iterations_to_measure(window, w.step_seconds * w.dilation);
}

// The latest warm-up at a dilation decides about it, so a disturbance that has passed does not
// count.
const WarmUp* latest_at(std::span<const WarmUp> played, double dilation) {
  const auto found = std::find_if(played.rbegin(), played.rend(),
                                  [&](const WarmUp& w) { return w.dilation == dilation; });
  return found == played.rend() ? nullptr : &*found;
}

// The least dilation that was good; below it, the largest that was not (0: none).
const WarmUp* least_good(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp* least = nullptr;
  for (const WarmUp& w : played)
    if (&w == latest_at(played, w.dilation) && good(w, window) &&
        (least == nullptr || w.dilation < least->dilation))
      least = &w;
  return least;
}

double most_bad(std::span<const WarmUp> played, double below, const RunWindow& window) {
  double most = 0;
  for (const WarmUp& w : played)
    if (w.dilation < below && !good(*latest_at(played, w.dilation), window))
      most = std::max(most, w.dilation);
  return most;
}

double seconds_spent(std::span<const WarmUp> played) {
  double sum = 0;
  for (const WarmUp& w : played) sum += w.wall_seconds();
  return sum;
}

// Whether the last warm-up may have met a slow moment: it is the first that missed at its dilation,
// and it missed by little, or another one at this dilation was good. A long warm-up that was
// faithful is not repeated.
bool may_be_chance(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp& last = played.back();
  if (good(last, window)) return false;
  if (last.fidelity.faithful && last.wall_seconds() > kLongLook) return false;
  int misses = 0;
  bool was_good = false;
  for (const WarmUp& w : played) {
    if (w.dilation != last.dilation || !long_enough(w, window)) continue;
    was_good |= good(w, window);
    misses += !good(w, window);
  }
  return misses <= 1 && (was_good || load_of(last.fidelity, window) <= kLittle);
}

// Leaves out the waits for a core, which other programs cause.
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
           last.fidelity.run_queue_wait > kLessHelp * before.run_queue_wait;
  });
}

// The warm-up to go by if none was good: a faithful one, else the least loaded; among about equally
// loaded ones the smallest dilation.
const WarmUp& best_of(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp* best = nullptr;
  const auto better = [&](const WarmUp& a, const WarmUp& b) {
    if (a.fidelity.faithful != b.fidelity.faithful) return a.fidelity.faithful;
    const double of_a = load_of(a.fidelity, window), of_b = load_of(b.fidelity, window);
    return a.dilation > b.dilation ? of_a < kLessHelp * of_b : of_a * kLessHelp <= of_b;
  };
  for (const WarmUp& w : played)
    if (&w == latest_at(played, w.dilation) && (best == nullptr || better(w, *best))) best = &w;
  return *best;
}

// How much of the aims a good warm-up used: its dilation may be smaller by this factor. Here
// lateness counts as it is: if it rises faster, the next warm-up shows it.
double load_below(const WarmUp& w, const RunWindow& window) {
  Fidelity others = w.fidelity;
  others.critical_lateness = 0;
  return std::max(load_of(others, window), w.fidelity.critical_lateness / room_of(w, window).aim);
}

// A smaller dilation than that of `least`, the least good one, to try next; 0: there is none.
// `bad`: the largest that was not good, 0: none.
double smaller(const WarmUp& least, double bad, const RunWindow& window) {
  const double now = least.dilation, floor = std::max(window.least_dilation, 1.0);
  if (now <= floor || now <= kNear * bad) return 0;
  const double by_load = now * std::max(load_below(least, window), 1 / kMostFactor);
  const double middle = std::sqrt(bad * now);
  const double target =
      std::max(floor, rounded_up(std::min(std::max(by_load, middle), now / kNear)));
  return target < now ? target : 0;
}

// Whether another warm-up at `dilation` is worth its time.
bool affordable(std::span<const WarmUp> played, double dilation, const RunWindow& window) {
  const double step = played.back().step_seconds;
  return seconds_spent(played) + look_wall_seconds(window, step * dilation) <=
         kMostSearch + planned_wall_seconds(window, step * dilation);
}

// The next play if a good dilation is known.
NextPlay near_the_least(std::span<const WarmUp> played, const WarmUp& least,
                        const RunWindow& window) {
  const WarmUp& last = played.back();
  const double bad = most_bad(played, least.dilation, window);
  const double target = smaller(least, bad, window);
  if (target > 0 && target < least.dilation && played.size() < kMostWarmUps &&
      affordable(played, target, window))
    return {
        true, target, look_iterations(window, last.step_seconds * target),
        target < last.dilation
            ? "loop busy " + percent(last.fidelity.loop_busy) + ", lateness on the critical path " +
                  percent(last.fidelity.critical_lateness) + " in the warm-up, far below the limits"
            : why_slower(last, window)};
  const bool needs_room = bad > 0 && least.dilation <= kNear * bad &&
                          measured_once(window, last.step_seconds * least.dilation);
  const double taken = needs_room ? rounded_up(least.dilation * kSpare) : least.dilation;
  return {false, taken, 0,
          taken == last.dilation   ? ""
          : !good(last, window)    ? why_slower(last, window)
          : taken > least.dilation ? "some room above the least that was faithful"
                                   : ""};
}

// The next play if no good dilation is known yet.
NextPlay slower(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp& last = played.back();
  const Fidelity& f = last.fidelity;
  const auto target_for = [&](const Fidelity& of) {
    return rounded_up(last.dilation * std::clamp(load_of(of, window), kLeastFactor, kMostFactor));
  };
  const auto costly = [&](double dilation) {
    return look_wall_seconds(window, last.step_seconds * dilation) > kLongLook;
  };
  double target = target_for(f);
  const bool only_waits = !f.faithful && load_of(alone(f), window) <= 1;
  if (only_waits && (costly(target) || waits_as_before(played))) target = last.dilation;
  if (costly(target)) target = std::min(target, target_for(alone(f)));
  if (target == last.dilation ||
      played.size() >= (costly(target) ? kMostLongWarmUps : kMostWarmUps)) {
    const WarmUp& best = best_of(played, window);
    return {false, best.dilation, 0,
            (best.dilation < last.dilation ? "slowing down does not help: " : "") +
                why_slower(best, window),
            !best.fidelity.faithful};
  }
  // A little above a faithful dilation: not worth another long warm-up.
  if (f.faithful && costly(target)) return {false, target, 0, why_slower(last, window)};
  return {true, target, look_iterations(window, last.step_seconds * target),
          why_slower(last, window)};
}

}  // namespace

int iterations_to_measure(const RunWindow& window, double step_wall_seconds) {
  if (window.min_seconds <= 0 || step_wall_seconds <= 0) return window.iterations;
  const double wanted = std::ceil(window.min_seconds / step_wall_seconds);
  return std::max(window.iterations, static_cast<int>(std::min<double>(wanted, kMostIterations)));
}

NextPlay after_warm_ups(std::span<const WarmUp> played, const RunWindow& window) {
  const WarmUp& last = played.back();
  const bool nothing_to_learn = window.keep_dilation && window.min_seconds <= 0;
  if (played.size() < kMostWarmUps && !nothing_to_learn && !long_enough(last, window))
    return {true, last.dilation, look_iterations(window, last.step_seconds * last.dilation), ""};
  if (window.keep_dilation) return {false, last.dilation, 0, ""};
  if (played.size() < kMostWarmUps && may_be_chance(played, window) &&
      affordable(played, last.dilation, window))
    return {true, last.dilation, look_iterations(window, last.step_seconds * last.dilation), ""};
  const WarmUp* least = least_good(played, window);
  return least ? near_the_least(played, *least, window) : slower(played, window);
}

bool measure_again(const WarmUp& measured, int times, const RunWindow& window) {
  return !window.keep_dilation && !measured.fidelity.faithful && times < kMostMeasured &&
         times * measured.wall_seconds() <= kMostAgain;
}

}  // namespace ghostrank
