// The weights of one tensor as servers that step them should hold them: written apart from
// schemes/nesterov.h, whose constants it takes, to check it by. Weights and velocity are 0 at
// first.
//
//   v <- momentum v + g,   w <- w - rate (g + momentum v)     (Nesterov, in the form of PHub's
//   code)
//
// Single precision in this order of operations, so that results are equal bit by bit.
//
// Units: elements. Threading: one owner.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/schemes/nesterov.h"

namespace ghostrank {

class NesterovReference {
 public:
  // A step of the first sums.size() weights.
  void step(std::span<const float> sums) {
    constexpr Nesterov kRule;
    if (elements_.size() < sums.size()) elements_.resize(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Element& e = elements_[i];
      const float kept = kRule.momentum * e.velocity;
      e.velocity = kept + sums[i];
      const float ahead = kRule.momentum * e.velocity;
      const float move = kRule.rate * (sums[i] + ahead);
      e.weight = e.weight - move;
    }
  }
  float weight(std::size_t i) const { return elements_[i].weight; }

 private:
  struct Element {
    float weight = 0, velocity = 0;
  };
  std::vector<Element> elements_;
};

}  // namespace ghostrank
