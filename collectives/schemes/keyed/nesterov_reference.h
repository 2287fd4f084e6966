// The weights of one tensor as servers that step them should hold them: written apart from
// schemes/keyed/nesterov.h, to check it by. Weights and velocity are 0 at first.
//
//   v <- momentum v + g,   w <- w - rate (g + momentum v)     (Nesterov, in the form of PHub's
//   code)
//
// g is the sum over the ranks. Single precision in this order of operations, so that results are
// equal bit by bit.
//
// Units: elements. Threading: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

class NesterovReference final : public Expected {
 public:
  explicit NesterovReference(const Nesterov& rule) : rule_(rule) {}

  // A step of as many weights as there are gradients.
  std::span<const float> next(std::span<const std::vector<float>> given) override {
    const std::size_t count = given.front().size();
    velocity_.resize(std::max(velocity_.size(), count));
    weights_.resize(velocity_.size());
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (const std::vector<float>& gradients : given) sum += gradients[i];
      const float kept = rule_.momentum * velocity_[i];
      velocity_[i] = kept + sum;
      const float ahead = rule_.momentum * velocity_[i];
      const float move = rule_.rate * (sum + ahead);
      weights_[i] = weights_[i] - move;
    }
    return std::span(weights_).first(count);
  }

 private:
  Nesterov rule_;
  std::vector<float> weights_, velocity_;
};

}  // namespace ghostrank
