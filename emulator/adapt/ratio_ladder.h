// The ratios that a controller chooses among: from the least on, 24 to a decade in equal factors,
// and the most. They are few, so a run knows the sizes of all payloads before it starts.
//
// Threading: immutable.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

class RatioLadder {
 public:
  explicit RatioLadder(const RatioLimits& limits) {
    constexpr double kRungsPerDecade = 24;
    for (int i = 0;; ++i) {
      const double rung = limits.least * std::pow(10, i / kRungsPerDecade);
      if (rung >= limits.most) break;
      rungs_.push_back(rung);
    }
    rungs_.push_back(limits.most);
  }

  const std::vector<double>& rungs() const { return rungs_; }  // upwards
  // The largest rung that is no larger than `ratio`; the least if there is none.
  double at_most(double ratio) const {
    constexpr double kRounding = 1 + 1e-9;
    const auto above = std::upper_bound(rungs_.begin(), rungs_.end(), ratio * kRounding);
    return above == rungs_.begin() ? rungs_.front() : *std::prev(above);
  }

 private:
  std::vector<double> rungs_;
};

}  // namespace ghostrank
