// SIDCo's adaptive stages (sidco.cpp), which are a tensor's state from step to step. Every five
// steps they are judged by the mean of the ratio sent over the ratio asked for:
//
//   within a tenth of 1   All stays.
//   within a fifth of 1   The number of stages stays, and the share that the first one keeps moves
//                         by 0.05: up where too little is sent, the other way once that makes it
//                         worse.
//   else                  The number becomes the one whose last mean was nearest to 1, or a
//                         neighbour of that one which was not tried lately. Where none comes near,
//                         the nearest one takes turns with a neighbour that errs to the other side,
//                         so that the mean over time is right. Where the number is the best and
//                         not near, the first one's share moves.
//
// The rule is our own. The published rule removes a fit while too much is sent and adds one while
// too little is sent. That is right if magnitudes have lighter tails than the fitted law: one fit
// then sends too little, and each further fit sends more. With heavier tails it is the other way
// round, and the published rule stays at one fit, which sends several times too much. Where the
// number of stages does not help, its authors' program can also move the first stage's share, by
// 0.05 from 0.25 and between 0.05 and 0.5 as here, but does so only if that is switched on.
//
// Threading: one owner.
#pragma once

#include <string_view>
#include <vector>

namespace ghostrank {

// As many stages as a fixed ratio asks for: the first keeps the share `first`, the others `step`.
int sidco_stages(double ratio, double step, double first = 0.25);
// Whether a method of this name has stages.
bool has_stages(std::string_view method);

class SidcoStages {
 public:
  explicit SidcoStages(double ratio);
  int stages() const { return stages_; }
  double first_stage() const { return first_; }  // as CompressionOptions has it
  // Reports what a step with these stages sent, as a share of the tensor's elements.
  void sent(double share);

 private:
  int next() const;
  void correct_first(double mean);
  double mean_of(int stages) const;  // 0: not tried lately; negative: no such number

  double ratio_;
  int stages_ = 1;
  double first_;
  double first_way_ = 1;  // -1: a larger share makes this law send less
  double first_off_;      // how far the mean was from 1 when first_ was last moved
  double sum_ = 0;        // of share / ratio, since the last look
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
