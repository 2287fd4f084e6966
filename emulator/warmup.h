// What follows from a run's warm-ups: the dilation that `scale.dilation: auto` takes, and how many
// iterations are measured.
//
// Every process draws the same conclusions from the same numbers, so these are few and of fixed
// size. Threading: pure functions.
#pragma once

#include <span>
#include <string>

#include "emulator/result/result.h"

namespace ghostrank {

// One warm-up as it was played.
struct WarmUp {
  double dilation = 1;
  int iterations = 1;
  double step_seconds = 0;  // emulated, mean
  Fidelity fidelity;

  double wall_seconds() const { return iterations * step_seconds * dilation; }
};

// What a run asks for.
struct RunWindow {
  int warmup = 1, iterations = 1;
  double min_seconds = 0;      // wall: the measured iterations last about as long, or longer
  double least_dilation = 1;   // `auto` never goes below it
  bool keep_dilation = false;  // the job gives it
};

// How many iterations to measure when a step takes so many seconds of wall time: at least those
// asked for. 0 seconds: not known, and then exactly those.
int iterations_to_measure(const RunWindow& window, double step_wall_seconds);

// What comes after some warm-ups. `auto` slows down where the machine did not keep up, or hardly
// did (iterations may meet a slower moment), speeds up where there was a lot of room and what is
// measured repays another warm-up, and ends at a dilation at which a warm-up was faithful, if there
// was one, or a little above it where warm-ups are long. A short warm-up is followed by a longer
// one before anything is concluded. Waiting for a core, which other programs cause, becomes rarer
// with larger dilations, too; they are tried while that helps and warm-ups are short.
struct NextPlay {
  bool again = false;  // another warm-up; else what is measured
  double dilation = 1;
  int iterations = 0;  // of that warm-up
  std::string reason;  // of another dilation than that of the last warm-up
};
inline constexpr std::size_t kMostWarmUps = 6;
NextPlay after_warm_ups(std::span<const WarmUp> played, const RunWindow& window);

}  // namespace ghostrank
