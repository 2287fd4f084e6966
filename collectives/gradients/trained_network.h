// Real gradients without a framework: a perceptron with two hidden layers, trained by stochastic
// gradient descent on points that are drawn around centres, three of each of ten classes.
//
//   64 inputs -> 300 relu -> 300 relu -> 10 softmax, cross entropy, 64 samples a step
//
// The tensors of all layers lie one after the other: 112,810 gradients.
//
// Threading: one owner. Deterministic by seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ghostrank {

class TrainedNetwork {
 public:
  explicit TrainedNetwork(std::uint64_t seed = 1);

  // Applies the last step's gradients; returns those of new samples, valid until the next step.
  std::span<const float> step();
  // Mean cross entropy of the last step's samples, in nats.
  double loss() const { return loss_; }
  std::size_t parameters() const { return weights_.size(); }

 private:
  struct Layer {
    std::size_t inputs, outputs, at;  // weights at `at`, by output; then as many biases
  };
  void forward(const Layer& layer, std::span<const float> in, std::span<float> out) const;
  void backward(const Layer& layer, std::span<const float> in, std::span<const float> errors,
                std::span<float> errors_in);
  void draw_samples();

  std::uint64_t seed_, steps_ = 0;
  std::vector<Layer> layers_;
  std::vector<float> weights_, gradients_, centres_;
  std::vector<std::vector<float>>
      values_;                        // by layer: its inputs, sample by sample; the last: outputs
  std::vector<std::size_t> classes_;  // of the step's samples
  double loss_ = 0;
};

}  // namespace ghostrank
