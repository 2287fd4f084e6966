// The measured iterations of a run with an open end (run.duration, run.until): plays them part by
// part until the end is reached, and keeps what the result has of them.
//
// Process 0 decides, because it hears of every iteration, and tells the others.
//
// Units: seconds. Threading: one owner on every process, all of which call play() together.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/control/control.h"
#include "emulator/player.h"
#include "emulator/result/kept_iterations.h"
#include "emulator/result/result.h"
#include "emulator/run_length.h"

namespace ghostrank {

class OpenEnded {
 public:
  // As RunLength. `step_wall`: what an iteration takes by the warm-up; 0: unknown.
  OpenEnded(const RunEnd& end, int least, bool virtual_time, bool deterministic, double step_wall)
      : length_(end, least, virtual_time, deterministic), step_wall_(step_wall) {}

  // Plays the segment, whose first iteration began at `began_ns` of monotonic_ns(). Sets its count.
  // `callbacks` tell of iterations by iteration_ended().
  SegmentReport play(Player& player, Control& control, Segment& segment, std::int64_t began_ns,
                     const Player::Callbacks& callbacks);
  void iteration_ended(const IterationReport& report);

  std::optional<double> half_width() const { return length_.half_width(); }
  double fraction(double iterations, double wall) const {
    return length_.fraction(iterations, wall);
  }
  const std::vector<IterationReport>& iterations() const { return kept_.iterations(); }
  // How it ended and what was kept; on process 0 also why, in the notes.
  void report(bool first_process, Result& result) const;

 private:
  RunLength length_;
  const double step_wall_;
  KeptIterations kept_;
  int parts_ = 0;  // so far
};

}  // namespace ghostrank
