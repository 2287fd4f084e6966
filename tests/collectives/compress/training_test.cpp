// Training still learns: logistic regression on generated data by eight ranks, whose gradients are
// compressed, exchanged and decompressed by every method.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "collectives/compressor.h"

namespace ghostrank {
namespace {

constexpr int kTrainingRanks = 8, kSamples = 32, kFeatures = 40, kMostSteps = 900;
// Small, so that error feedback's delay of about 1 / ratio steps matters little.
constexpr float kRate = 0.3f;
using Floats = std::vector<float>;

struct Sample {
  Floats x;
  float y = 0;
};

// Each rank's own samples of one linear rule.
std::vector<std::vector<Sample>> make_data() {
  checking::Dice dice(17);
  const auto unit = [&] { return static_cast<float>(dice.below(2001)) * 1e-3f - 1; };
  Floats rule(kFeatures);
  for (float& w : rule) w = 2 * unit();
  std::vector<std::vector<Sample>> data(kTrainingRanks);
  for (auto& own : data)
    for (int s = 0; s < kSamples; ++s) {
      Sample sample{Floats(kFeatures), 0};
      float sum = 0;
      for (std::size_t f = 0; f < kFeatures; ++f) {
        sample.x[f] = unit();
        sum += sample.x[f] * rule[f];
      }
      sample.y = sum > 0 ? 1.0f : 0.0f;
      own.push_back(sample);
    }
  return data;
}

double predicted(const Floats& w, const Floats& x) {
  double sum = 0;
  for (std::size_t f = 0; f < w.size(); ++f)
    sum += static_cast<double>(w[f]) * static_cast<double>(x[f]);
  return 1 / (1 + std::exp(-sum));
}

double loss_of(const Floats& w, const std::vector<std::vector<Sample>>& data) {
  double loss = 0;
  for (const auto& own : data)
    for (const Sample& s : own) {
      const double p = std::clamp(predicted(w, s.x), 1e-9, 1 - 1e-9);
      loss -= s.y > 0 ? std::log(p) : std::log(1 - p);
    }
  return loss / (kTrainingRanks * kSamples);
}

Floats gradient(const Floats& w, const std::vector<Sample>& own) {
  std::vector<double> sum(w.size());
  for (const Sample& s : own) {
    const double off = predicted(w, s.x) - static_cast<double>(s.y);
    for (std::size_t f = 0; f < w.size(); ++f)
      sum[f] += off * static_cast<double>(s.x[f]) / kSamples;
  }
  return {sum.begin(), sum.end()};
}

// Steps until the loss is below `goal`; kMostSteps + 1: never. A null method is none.
int steps_to(double goal, const Compressor* method, bool feedback) {
  const auto data = make_data();
  Floats w(kFeatures);
  std::vector<Floats> residual(kTrainingRanks, Floats(kFeatures));
  for (int step = 0; step <= kMostSteps; ++step) {
    if (loss_of(w, data) < goal) return step;
    std::vector<Floats> tensors;
    std::vector<CompressionOptions> options(kTrainingRanks);
    for (std::size_t r = 0; r < kTrainingRanks; ++r) {
      tensors.push_back(gradient(w, data[r]));
      options[r].ratio = 0.1;
      options[r].threshold = 0.02;
      options[r].rows = 8;
      options[r].shared_seed = static_cast<std::uint64_t>(step);
      options[r].seed = static_cast<std::uint64_t>(step) * kTrainingRanks + r;
      if (feedback)
        for (std::size_t f = 0; f < kFeatures; ++f) tensors[r][f] += residual[r][f];
    }
    Floats sum(kFeatures);
    if (method) {
      sum = exchanged(*method, tensors, options);
      for (std::size_t r = 0; feedback && r < kTrainingRanks; ++r) {
        const std::vector<Floats> own{tensors[r]};
        const Floats sent = exchanged(*method, own, std::span(&options[r], 1));
        for (std::size_t f = 0; f < kFeatures; ++f) residual[r][f] = tensors[r][f] - sent[f];
      }
    } else {
      for (const Floats& t : tensors)
        for (std::size_t f = 0; f < kFeatures; ++f) sum[f] += t[f];
    }
    // A vote has no magnitude, so it needs a small rate of its own.
    const float rate = method && method->majority ? 0.02f : kRate / kTrainingRanks;
    for (std::size_t f = 0; f < kFeatures; ++f) w[f] -= rate * sum[f];
  }
  return kMostSteps + 1;
}

TEST(Training, WithErrorFeedbackReachesTheLossOfNoneInHalfAsManyStepsMore) {
  constexpr double kGoal = 0.35;
  const int none = steps_to(kGoal, nullptr, false);
  ASSERT_LT(none, kMostSteps / 3);
  std::printf("%-14s %8s %8s   (none: %d steps)\n", "method", "feedback", "without", none);
  for (const Compressor& method : compressors()) {
    const bool biased = !method.majority;  // a vote keeps no residual
    const int with = steps_to(kGoal, &method, biased), without = steps_to(kGoal, &method, false);
    std::printf("%-14s %8d %8d\n", std::string(method.name).c_str(), with, without);
    EXPECT_LE(with, none * 3 / 2) << method.name;
  }
}

}  // namespace
}  // namespace ghostrank
