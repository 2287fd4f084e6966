// DGC's search for a threshold: from a sample, then corrected until about the right number of
// elements exceeds it.
//
// Threading: pure functions.
#pragma once

#include <span>

namespace ghostrank {

// Returns a threshold that about share * magnitudes.size() magnitudes reach; 0 for no magnitudes.
// The first value comes from a sample of 1 % (drawn with replacement from `seed`). Then, at most 20
// times, it is raised by a quarter if more than 1.25 times as many reach it, and lowered by a tenth
// if fewer than 0.8 times as many do.
float sampled_threshold(std::span<const float> magnitudes, double share, unsigned long long seed);

}  // namespace ghostrank
