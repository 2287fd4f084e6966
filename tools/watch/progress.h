// What a person sees while a run goes on, on stderr. On a terminal one line is repainted; elsewhere
// (a log file, CI) a plain line appears at the end of an iteration, at most every ten seconds: a
// short run leaves none.
//
// Threading: one owner.
#pragma once

#include <cstdio>
#include <string>

namespace ghostrank {

// How far a run is. `iteration` counts from 0; warm-up iterations are negative, -1 the last.
struct ProgressState {
  int iteration = 0, iterations = 0, warmup = 0;  // iterations: 0: their number is open
  double step_seconds = 0;  // of the last ended iteration, emulated; 0: none has ended yet
  double fraction = 0;      // of the whole run
  double wall_seconds = 0;  // since the start
  // Half of the 95 % interval of the mean step, as a share of it: so far (0: unknown), and wanted
  // (0: any will do).
  double half_width = 0, wanted_half_width = 0;
};

std::string progress_text(const ProgressState& state);

class Progress {
 public:
  enum class Mode { silent, plain, live };
  // Counts as far as known yet; `wanted_half_width`: see ProgressState.
  Progress(std::FILE* out, Mode mode, int warmup, int iterations, double wanted_half_width = 0);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void plays(int iterations, bool measured);  // the next phase: measured, or a warm-up
  void iteration_ended(int index, double step_seconds);
  void knows_mean_to(double half_width) { state_.half_width = half_width; }
  void advanced(double fraction, double wall_seconds);
  void clear();  // removes the live line, so that other text may be printed

 private:
  void repaint();

  std::FILE* out_;
  Mode mode_;
  ProgressState state_;
  double last_plain_wall_ = 0, last_paint_wall_ = 0;
  bool painted_ = false;
};

}  // namespace ghostrank
