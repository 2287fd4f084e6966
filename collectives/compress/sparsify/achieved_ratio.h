// How near a method comes to the ratio that it is asked for, on a tensor that it sees step after
// step: the number of stages adapts where a method has stages, and what was not sent is added to
// the next gradients where there is error feedback.
//
// Units: shares of the tensor's elements. Threading: one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/compress/sparsify/sidco.h"
#include "collectives/compressor.h"

namespace ghostrank {

class AchievedRatio {
 public:
  // `method` must have a ratio (Compressor::kept is not null) and outlive this object.
  AchievedRatio(const Compressor& method, double ratio, bool feedback);

  // Compresses a step's gradients and returns the share that was sent over the ratio asked for.
  double step(std::span<const float> gradients, std::uint64_t seed);

 private:
  const Compressor& method_;
  double ratio_;
  bool feedback_;
  SidcoStages stages_;
  std::vector<float> residual_;  // with feedback: what was not sent so far
};

}  // namespace ghostrank
