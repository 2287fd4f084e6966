// Decides, part by part, how long a run with an open end goes on (RunEnd, profiles/job/job.h).
// Between parts everything is at rest, so every part is a segment of its own; parts are long enough
// that this hardly shows, and short enough that the end comes in time. In virtual time their
// lengths do not depend on this machine's speed, so the same job plays the same parts.
//
// Units: seconds. Threading: one owner, on process 0, which hears of every iteration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/result/mean_interval.h"
#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

class RunLength {
 public:
  // `least`: iterations that are played in any case.
  RunLength(const RunEnd& end, int least, bool virtual_time, bool deterministic);

  void iteration_ended(double seconds) { steps_.add(seconds); }

  // How many iterations the next part has, after those that have ended; 0: the run ends. `wall`:
  // since the first measured iteration began; `emulated`: when the last one ended. `step_wall`:
  // what the warm-up says that an iteration takes, for the first part; 0: unknown.
  std::uint32_t next(double wall, double emulated, double step_wall);

  // What ended the run; set by the next() that returned 0.
  EndedBy ended_by() const { return ended_by_; }
  // Half of the 95 % interval of the mean step, as a share of it.
  std::optional<double> half_width() const { return steps_.half_width(); }
  // How much of the run is over, 0..1, after so many iterations; of run.until, an estimate.
  double fraction(double iterations, double wall) const;
  // For the notes of a result: why the run ended.
  std::string why() const;

 private:
  std::uint32_t end(EndedBy by);
  std::uint32_t next_by_time(double wall, double emulated);
  std::uint32_t next_by_interval(double wall);

  const RunEnd end_;
  const std::int64_t least_;
  const bool virtual_, deterministic_;
  RunningMean steps_;
  EndedBy ended_by_ = EndedBy::nothing;
};

}  // namespace ghostrank
