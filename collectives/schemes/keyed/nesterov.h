// The step of SGD with Nesterov's momentum, as PHub's servers take it for the weights of a key.
// Threading: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/schedule.h"

namespace ghostrank {

// m = momentum m + g;  w -= rate (g + momentum m), element by element in single precision. All
// three have the same length.
inline void take_step(const Nesterov& by, std::span<float> weights, std::span<float> moments,
                      std::span<const float> gradients) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    moments[i] = by.momentum * moments[i] + gradients[i];
    weights[i] -= by.rate * (gradients[i] + by.momentum * moments[i]);
  }
}

}  // namespace ghostrank
