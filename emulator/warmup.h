// Decides from a run's warm-ups which dilation `scale.dilation: auto` takes and how many iterations
// are measured.
//
// Every process draws the same conclusions, because all have the same few numbers of fixed size.
// Threading: pure functions.
#pragma once

#include <span>
#include <string>

#include "emulator/result/result.h"

namespace ghostrank {

// Settings and outcome of one warm-up, or of measured iterations that were not faithful.
struct WarmUp {
  double dilation = 1;
  int iterations = 1;
  double step_seconds = 0;  // emulated, mean
  Fidelity fidelity;

  double wall_seconds() const { return iterations * step_seconds * dilation; }
};

// What the job asks for.
struct RunWindow {
  int warmup = 1, iterations = 1;
  double min_seconds = 0;      // wall; the measured iterations last at least about as long
  double least_dilation = 1;   // lower bound of `auto`
  bool keep_dilation = false;  // the job gives the dilation
  bool network = false;        // messages cross a real one, where being held up counts
  int look =
      1;  // a further warm-up has at least so many iterations, to play every program measured
};

// How many iterations to measure if a step takes `step_wall_seconds` of wall time: at least those
// asked for. 0 s means unknown and gives exactly those.
int iterations_to_measure(const RunWindow& window, double step_wall_seconds);

// What to play after the warm-ups `played`; the last one is new. `auto` searches the least
// dilation that is good (faithful with some room), between one that was good and one that was not:
//   - while none was good it raises the dilation by what the worst figure asks for;
//   - from a good one it goes down, until the next smaller one is known not to be good;
//   - it takes the good one; or, where a dilation just below was not good and measuring again would
//     take long, a larger one, because measured iterations may meet a slower moment;
//   - it repeats a short warm-up with more iterations before it concludes anything, and one that
//     missed by little once;
//   - it spends no more on going down than kMostSearch plus the time of the measured iterations.
// Waiting for a core is caused by other programs but also becomes rarer with a larger dilation, so
// larger ones are tried while that helps and warm-ups are short.
struct NextPlay {
  bool again = false;  // play another warm-up; else measure
  double dilation = 1;
  int iterations = 0;     // of the next warm-up
  std::string reason;     // why the dilation changes; empty if it does not
  bool hopeless = false;  // no dilation was faithful: `reason` says why, and the run will say so
};
inline constexpr std::size_t kMostWarmUps = 24;
NextPlay after_warm_ups(std::span<const WarmUp> played, const RunWindow& window);

// Whether iterations that were just measured, for the `times`-th time, count as one more warm-up
// and are measured again: `auto` chose their dilation, they were not faithful, and did not take
// long.
bool measure_again(const WarmUp& measured, int times, const RunWindow& window);

}  // namespace ghostrank
