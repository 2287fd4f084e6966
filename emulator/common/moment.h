// A point of emulated time and how much of it is this machine's fault.
//
// `at` is ideal: a modelled delay starts when its predecessor ideally ended, not when a thread woke
// up, so lateness does not accumulate. Only a real arrival re-anchors a chain, and then the part of
// it that the machine (not the network) caused is added to `slip`. What the last rank's chain has
// gathered at the end of an iteration is the lateness on the critical path.
#pragma once

#include <algorithm>

#include "profiles/units.h"

namespace ghostrank {

struct Moment {
  Picoseconds at = 0;
  Picoseconds slip = 0;
};

// Of two things that must both have happened, the one that happened last.
inline Moment later(const Moment& a, const Moment& b) {
  if (a.at != b.at) return a.at > b.at ? a : b;
  return a.slip > b.slip ? a : b;
}

}  // namespace ghostrank
