// The step of SGD with Nesterov's momentum, as PHub's servers take it for the weights of a key.
// Threading: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <span>

namespace ghostrank {

struct Nesterov {
  float rate = 0.1F, momentum = 0.9F;

  // m = momentum m + g;  w -= rate (g + momentum m), element by element in single precision. All
  // three have the same length.
  void step(std::span<float> weights, std::span<float> moments,
            std::span<const float> gradients) const {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      moments[i] = momentum * moments[i] + gradients[i];
      weights[i] -= rate * (gradients[i] + momentum * moments[i]);
    }
  }
};

}  // namespace ghostrank
