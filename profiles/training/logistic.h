// A small task with which a job can show that its ranks still learn: logistic regression with as
// many weights as the job has gradients, on data that every process can make.
//
// A sample x has a number for each weight, uniform within +-sqrt(40 / weights), so that its length
// does not depend on the number of weights. Its class y is 1 where r x > 0 and 0 elsewhere; the
// rule r is drawn uniformly within +-1 and halved from quarter to quarter of its elements: some
// weights matter more, as in real models. Every rank has samples of its own; draws depend on the
// seed, the rank and the sample alone.
//
//   p = 1 / (1 + exp(-w x));   loss = mean of -log(p or 1 - p);   gradient = mean of (p - y) x
//
// Units: weights. Threading: immutable. Memory: 4 bytes for each rank, sample and weight.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ghostrank {

class LogisticTask {
 public:
  LogisticTask(int ranks, int samples, std::uint64_t weights, std::uint64_t seed);

  // The mean gradient of a rank's samples for these weights.
  std::vector<float> gradient(int rank, std::span<const float> weights) const;
  // The mean loss over the samples of all ranks.
  double loss(std::span<const float> weights) const;

 private:
  struct Sample {
    std::vector<float> x;
    bool y = false;
  };
  std::vector<std::vector<Sample>> of_rank_;
};

}  // namespace ghostrank
