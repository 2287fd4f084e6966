// SIDCo's adaptive number of stages (sidco.cpp), which is a tensor's state from step to step: every
// five steps a fit more while too few elements are sent, one fewer while too many are.
//
// Threading: one owner.
#pragma once

#include <cstdint>

namespace ghostrank {

// As many stages as a fixed ratio asks for: a first one of 0.25, then `step` each.
int sidco_stages(double ratio, double step);

class SidcoStages {
 public:
  explicit SidcoStages(double ratio, int first = 1);
  int stages() const { return stages_; }
  // What a step with stages() sent: its share of the tensor's elements.
  void sent(double share);

 private:
  double ratio_;
  int stages_, most_;
  double sum_ = 0;  // of share / ratio, since the last change
  int steps_ = 0;
};

}  // namespace ghostrank
