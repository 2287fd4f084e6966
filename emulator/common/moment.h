// A point of emulated time, and how much of it this machine's lateness caused.
//
// `at` is ideal: a modelled delay starts when its predecessor ideally ended, not when a thread woke
// up, so lateness does not accumulate. Only a real arrival re-anchors a chain; then `slip` grows by
// the part that the machine, not the network, caused. The slip of the last rank's chain at the end
// of an iteration is the lateness on the critical path.
#pragma once

#include <algorithm>

#include "profiles/units.h"

namespace ghostrank {

struct Moment {
  Picoseconds at = 0;
  Picoseconds slip = 0;
};

// The later of two moments; of two at the same time, the one with more slip.
inline Moment later(const Moment& a, const Moment& b) {
  if (a.at != b.at) return a.at > b.at ? a : b;
  return a.slip > b.slip ? a : b;
}

}  // namespace ghostrank
