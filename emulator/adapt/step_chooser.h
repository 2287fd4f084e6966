// Decides what each iteration plays, by how the network carried the ones before. The player then
// plays every iteration as a segment of its own, and asks in between; the network's time goes on
// from segment to segment.
//
// Threading: the player's thread. Every process has one; all make the same calls with the same
// values, so all choose the same.
#pragma once

#include "collectives/schedule.h"

namespace ghostrank {

class StepChooser {
 public:
  virtual ~StepChooser() = default;
  // The iterations of a warm-up, or the measured ones, begin at this dilation. May be called again.
  virtual void begin(double dilation) = 0;
  // Writes the program of the next iteration. No rank plays meanwhile.
  virtual void choose() = 0;
  // The function whose calls are measured.
  virtual Func exchange() const = 0;
  // Seconds of emulated time that all these calls took together in the iteration chosen last, as
  // the first ranks of their groups saw them.
  virtual void measured(double seconds) = 0;
};

}  // namespace ghostrank
