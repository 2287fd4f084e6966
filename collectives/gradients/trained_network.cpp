#include "collectives/gradients/trained_network.h"

#include <algorithm>
#include <cmath>

#include "collectives/common/dice.h"
#include "collectives/gradients/gradient_law.h"

namespace ghostrank {
namespace {

constexpr std::size_t kSizes[] = {64, 300, 300, 10};
constexpr std::size_t kLayers = std::size(kSizes) - 1, kClasses = kSizes[kLayers];
constexpr std::size_t kCentres = 3, kSamples = 64;
constexpr float kNoise = 1, kRate = 0.1f;

// Normal draws of this deviation.
void draw_normal(std::uint64_t seed, float deviation, std::span<float> out) {
  GradientLaw law;
  law.kind = GradientLaw::Kind::gaussian;
  law.scale = static_cast<double>(deviation) * std::sqrt(2 / 3.14159265358979);
  law.draw(seed, out);
}

}  // namespace

TrainedNetwork::TrainedNetwork(std::uint64_t seed) : seed_(seed) {
  std::size_t at = 0;
  for (std::size_t l = 0; l < kLayers; ++l) {
    layers_.push_back({kSizes[l], kSizes[l + 1], at});
    at += (kSizes[l] + 1) * kSizes[l + 1];
  }
  weights_.resize(at);
  gradients_.resize(at);
  for (const std::size_t size : kSizes) values_.emplace_back(size * kSamples);
  classes_.resize(kSamples);
  for (std::size_t l = 0; l < kLayers; ++l)  // biases stay 0
    draw_normal(checking::mix(seed + l), std::sqrt(2.0f / static_cast<float>(kSizes[l])),
                std::span(weights_).subspan(layers_[l].at, kSizes[l] * kSizes[l + 1]));
  centres_.resize(kClasses * kCentres * kSizes[0]);
  draw_normal(checking::mix(seed + kLayers), 1, centres_);
}

void TrainedNetwork::draw_samples() {
  checking::Dice dice(checking::mix(seed_) + steps_);
  draw_normal(dice.next(), kNoise, values_[0]);
  for (std::size_t s = 0; s < kSamples; ++s) {
    const std::size_t centre = dice.below(kClasses * kCentres);
    classes_[s] = centre / kCentres;
    for (std::size_t i = 0; i < kSizes[0]; ++i)
      values_[0][s * kSizes[0] + i] += centres_[centre * kSizes[0] + i];
  }
}

void TrainedNetwork::forward(const Layer& layer, std::span<const float> in,
                             std::span<float> out) const {
  const float* biases = &weights_[layer.at + layer.inputs * layer.outputs];
  for (std::size_t s = 0; s < kSamples; ++s)
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      const float* row = &weights_[layer.at + o * layer.inputs];
      float sum = biases[o];
      for (std::size_t i = 0; i < layer.inputs; ++i) sum += row[i] * in[s * layer.inputs + i];
      out[s * layer.outputs + o] = sum;
    }
}

// Adds to the gradients of the layer's weights and, unless `errors_in` is empty, to the errors of
// its inputs.
void TrainedNetwork::backward(const Layer& layer, std::span<const float> in,
                              std::span<const float> errors, std::span<float> errors_in) {
  float* biases = &gradients_[layer.at + layer.inputs * layer.outputs];
  for (std::size_t s = 0; s < kSamples; ++s)
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      const float error = errors[s * layer.outputs + o];
      if (error == 0) continue;
      biases[o] += error;
      float* row = &gradients_[layer.at + o * layer.inputs];
      const float* weights = &weights_[layer.at + o * layer.inputs];
      for (std::size_t i = 0; i < layer.inputs; ++i) row[i] += error * in[s * layer.inputs + i];
      if (errors_in.empty()) continue;
      for (std::size_t i = 0; i < layer.inputs; ++i)
        errors_in[s * layer.inputs + i] += error * weights[i];
    }
}

std::span<const float> TrainedNetwork::step() {
  for (std::size_t i = 0; steps_ > 0 && i < weights_.size(); ++i)
    weights_[i] -= kRate * gradients_[i];
  std::fill(gradients_.begin(), gradients_.end(), 0.0f);
  draw_samples();
  ++steps_;
  for (std::size_t l = 0; l < kLayers; ++l) {
    forward(layers_[l], values_[l], values_[l + 1]);
    if (l + 1 < kLayers)
      for (float& x : values_[l + 1]) x = std::max(x, 0.0f);
  }
  loss_ = 0;
  std::vector<float> errors = values_[kLayers];
  for (std::size_t s = 0; s < kSamples; ++s) {
    const auto row = std::span(errors).subspan(s * kClasses, kClasses);
    const float most = *std::max_element(row.begin(), row.end());
    float sum = 0;
    for (float& x : row) sum += x = std::exp(x - most);
    for (float& x : row) x /= sum * kSamples;
    loss_ -= std::log(static_cast<double>(row[classes_[s]]) * kSamples) / kSamples;
    row[classes_[s]] -= 1.0f / kSamples;
  }
  for (std::size_t l = kLayers; l-- > 0;) {
    std::vector<float> errors_in(l > 0 ? values_[l].size() : 0);
    backward(layers_[l], values_[l], errors, errors_in);
    for (std::size_t i = 0; i < errors_in.size(); ++i)
      if (values_[l][i] <= 0) errors_in[i] = 0;  // relu
    errors = std::move(errors_in);
  }
  return gradients_;
}

}  // namespace ghostrank
