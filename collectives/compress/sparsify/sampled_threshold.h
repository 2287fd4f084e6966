// DGC's search for a threshold: from a sample, then corrected until about the right number of
// elements exceeds it.
//
// Threading: pure functions.
#pragma once

#include <span>

namespace ghostrank {

// Magnitudes at or above the result are about share * magnitudes.size() of them. A sample of 1 %
// (drawn with replacement from `seed`) gives the first value; then, at most 20 times, it is raised
// by a quarter while more than 1.25 times as many exceed it, and lowered by a tenth while fewer
// than 0.8 times do. 0 for no magnitudes.
float sampled_threshold(std::span<const float> magnitudes, double share, unsigned long long seed);

}  // namespace ghostrank
