// SIDCo's adaptive number of stages (sidco.cpp), which is a tensor's state from step to step. Every
// five steps it looks at the mean of the ratio sent over the ratio asked for: within a fifth of 1
// the number stays; else it becomes the one whose last mean was nearest to 1, or a neighbour of
// that one which was not tried lately. Where none is that near, the nearest one takes turns with a
// neighbour that errs to the other side, so that the mean over time is right.
//
// The rule is our own. The published one takes a fit off while too much is sent and adds one while
// too little is. That is right where magnitudes have lighter tails than the law that is fitted: one
// fit then sends too little, and each further one more. With heavier tails it is the other way
// round, and the published rule stays at one fit that sends several times too much.
//
// Threading: one owner.
#pragma once

#include <string_view>
#include <vector>

namespace ghostrank {

// As many stages as a fixed ratio asks for: a first one of 0.25, then `step` each.
int sidco_stages(double ratio, double step);
// Whether a method of this name has stages.
bool has_stages(std::string_view method);

class SidcoStages {
 public:
  explicit SidcoStages(double ratio, int first = 1);
  int stages() const { return stages_; }
  // What a step with stages() sent: its share of the tensor's elements.
  void sent(double share);

 private:
  int next() const;
  double mean_of(int stages) const;  // 0: not tried lately; negative: no such number

  double ratio_;
  int stages_;
  double sum_ = 0;  // of share / ratio, since the last look
  int steps_ = 0;
  double surplus_ = 0;  // sum of mean - 1 over looks since one was near enough, from -1 to 1
  int looks_ = 0;
  struct Tried {
    double mean = 0;  // of share / ratio, at the last look at this number; 0: never
    int look = 0;
  };
  std::vector<Tried> tried_;  // by stages, from 1
};

}  // namespace ghostrank
