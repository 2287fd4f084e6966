// Tunes a job before it is played (parallel.tune): plays a few steps with some settings, learns
// from their time which to try next, and keeps the fastest, which may be the job's own.
//
//   dear     the fusion threshold, 1 to 256 MiB. Starts at the job's own, then where a Gaussian
//            process (Matern 5/2) expects the largest improvement; 10 trials of two steps each.
//   horovod  the fusion buffer, up to 64 MiB, and the cycle, 1 to 100 ms: 20 samples, the first
//            four at fixed points; the median of five scores of ten steps each. The process has a
//            squared exponential kernel and noise.
//
// The rules are those of DeAR's tuner and of Horovod's autotune, with two differences: the kernel's
// length is found in a list and the next trial on a grid, both without chance; and every trial
// starts afresh, with a warm-up of its own. Horovod's margin of 0.01 is assumed.
//
// Threading: the thread that owns `control`.
#pragma once

#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/tuner/gaussian_process.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank {

struct TuningRule {
  struct Dimension {
    std::string_view key;  // of the job
    double ParallelPlan::*value;
    double lowest, highest;
    int points;  // of the grid on which the next trial is looked for
  };
  std::vector<Dimension> dimensions;
  std::vector<Point> starts;  // after the job's own settings, if `from_job`
  bool from_job = false;
  int trials = 0;
  int scores = 1, steps = 2;  // a trial's result: median of the scores, each the mean of `steps`
  GaussianKernel kernel;
  double margin = 0;      // of the expected improvement, in seconds
  bool relative = false;  // times and margin are relative to the slowest trial's time
};
const TuningRule& tuning_rule(Framework framework);  // dear or horovod

struct Trial {
  Point at;
  double seconds = 0;  // of a step
};

// The next point to try, given all trials so far.
Point next_trial(const TuningRule& rule, const std::vector<Trial>& trials, const Point& from_job);

struct Tuned {
  ParallelPlan parallel;      // the job's, with the fastest settings
  std::vector<Trial> trials;  // in the order played
  std::string note;           // settings and gain, for reports
};

// Plays the trials of a job with parallel.tune. Throws Error as playing does; ends early when
// `control` stops.
Tuned tune(const LoadedJob& job, Control& control);

}  // namespace ghostrank
