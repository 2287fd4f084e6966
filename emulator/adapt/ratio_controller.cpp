#include "emulator/adapt/ratio_controller.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ghostrank {
namespace {

constexpr double kProbe = 10;      // the second step's ratio over the first's
constexpr double kMostGrowth = 2;  // of later steps
constexpr int kHalvings = 40;

}  // namespace

RatioController::RatioController(const CompressedStep& step, const RatioLimits& limits,
                                 Payload payload)
    : step_(step),
      limits_(limits),
      ladder_(limits),
      payload_(std::move(payload)),
      ratios_(step.calls.size(), limits.least) {}

void RatioController::measured(double seconds_of_calls) {
  learn(seconds_of_calls);
  const bool probes = ++steps_ == 1;
  const std::vector<double> next =
      probes ? std::vector<double>(ratios_.size(), limits_.most) : wanted();
  for (std::size_t i = 0; i < ratios_.size(); ++i)
    ratios_[i] = ladder_.at_most(std::min(next[i], (probes ? kProbe : kMostGrowth) * ratios_[i]));
}

void RatioController::learn(double seconds_of_calls) {
  const double sent = bytes(ratios_);
  const auto calls = static_cast<double>(step_.calls.size());
  if (steps_ == 0) {
    first_seconds_ = seconds_of_calls;
    first_bytes_ = sent;
    return;
  }
  if (steps_ == 1) {
    byte_ = sent > first_bytes_
                ? std::max(0.0, (seconds_of_calls - first_seconds_) / (sent - first_bytes_))
                : 0;
    call_ = std::max(0.0, (first_seconds_ - byte_ * first_bytes_) / calls);
  }
  call_ = std::min(call_, seconds_of_calls / calls);
  byte_ = (seconds_of_calls - call_ * calls) / sent;
}

// Returns the ratios that the network can carry, regardless of the ratios sent before.
std::vector<double> RatioController::wanted() const {
  std::vector<double> ratios(step_.calls.size());
  // Bisect the logarithm, so that small ratios get as many halvings as large ones.
  double low = std::log(limits_.least), high = std::log(limits_.most);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    std::fill(ratios.begin(), ratios.end(), std::exp(middle));
    (end(ratios) <= step_.computed + limits_.budget ? low : high) = middle;
  }
  std::fill(ratios.begin(), ratios.end(), std::exp(low));
  fill_gaps(ratios);
  return ratios;
}

double RatioController::bytes(std::span<const double> ratios) const {
  double sum = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) sum += payload_(step_.calls[i], ratios[i]);
  return sum;
}

double RatioController::seconds_of(const SentTensor& call, double ratio) const {
  return call_ + (byte_ + step_.staged_byte) * payload_(call, ratio);
}

double RatioController::end(std::span<const double> ratios) const {
  double now = 0;
  for (const StreamPart& part : step_.stream) {
    if (part.kind == StreamPart::Kind::wait) now = std::max(now, part.seconds);
    if (part.kind == StreamPart::Kind::compute) now += part.seconds;
    if (part.kind == StreamPart::Kind::send)
      now += seconds_of(step_.calls[part.call], ratios[part.call]);
  }
  return now;
}

void RatioController::fill_gaps(std::vector<double>& ratios) const {
  const double byte = byte_ + step_.staged_byte;
  if (byte <= 0) return;
  double now = 0;
  const StreamPart* last = nullptr;  // the call before
  for (const StreamPart& part : step_.stream) {
    if (part.kind == StreamPart::Kind::compute) now += part.seconds;
    if (part.kind == StreamPart::Kind::send) {
      now += seconds_of(step_.calls[part.call], ratios[part.call]);
      last = &part;
    }
    if (part.kind != StreamPart::Kind::wait) continue;
    if (last && now < part.seconds) {
      const SentTensor& call = step_.calls[last->call];
      double& ratio = ratios[last->call];
      ratio = ratio_for(call, payload_(call, ratio) + (part.seconds - now) / byte, ratio);
    }
    now = std::max(now, part.seconds);
    last = nullptr;
  }
}

double RatioController::ratio_for(const SentTensor& call, double bytes, double at_least) const {
  if (payload_(call, limits_.most) <= bytes) return std::max(limits_.most, at_least);
  double low = std::log(at_least), high = std::log(limits_.most);
  for (int i = 0; i < kHalvings && high > low; ++i) {
    const double middle = low + (high - low) / 2;
    (payload_(call, std::exp(middle)) <= bytes ? low : high) = middle;
  }
  return std::exp(low);
}

}  // namespace ghostrank
