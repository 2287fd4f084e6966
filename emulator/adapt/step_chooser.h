// Decides what iterations play, one by one, by how the network carried the ones before. The player
// then plays every iteration as a segment of its own, in which the network's time goes on, and asks
// between them.
//
// Threading: the player's thread. All processes ask theirs the same, and tell it the same.
#pragma once

#include "collectives/schedule.h"

namespace ghostrank {

class StepChooser {
 public:
  virtual ~StepChooser() = default;
  // The iterations of a warm-up, or the measured ones, begin at this dilation; perhaps once more.
  virtual void begin(double dilation) = 0;
  // Writes the program of the next iteration. No rank plays meanwhile.
  virtual void choose() = 0;
  // The function whose calls are measured.
  virtual Func exchange() const = 0;
  // What these took in the iteration that was chosen last, all together: seconds of emulated time,
  // as the first ranks of their groups saw them.
  virtual void measured(double seconds) = 0;
};

}  // namespace ghostrank
