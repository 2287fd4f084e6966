#include "collectives/gradients/gradient_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "collectives/common/dice.h"

namespace ghostrank {
namespace {

using checking::Dice;

// Uniform in (0, 1).
double unit(Dice& dice) { return (static_cast<double>(dice.next() >> 12) + 0.5) * 0x1p-52; }

double normal(Dice& dice) {  // Box and Muller
  return std::sqrt(-2 * std::log(unit(dice))) * std::cos(2 * std::numbers::pi * unit(dice));
}

// Marsaglia and Tsang, 2000; shapes below 1 by the power of a uniform draw.
double gamma(Dice& dice, double shape) {
  if (shape < 1) return gamma(dice, shape + 1) * std::pow(unit(dice), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(dice), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(unit(dice)) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// Histogram as running sums.
struct Cumulative {
  explicit Cumulative(const std::vector<GradientLaw::Bin>& bins) {
    double sum = 0;
    for (const auto& bin : bins) ends.push_back(sum += bin.count);
  }
  double draw(Dice& dice, const std::vector<GradientLaw::Bin>& bins) const {
    const double at = unit(dice) * ends.back();
    const auto found = std::upper_bound(ends.begin(), ends.end(), at);
    const auto bin = std::min(static_cast<std::size_t>(found - ends.begin()), bins.size() - 1);
    const double low = bin == 0 ? 0 : bins[bin - 1].up_to;
    return low + (bins[bin].up_to - low) * unit(dice);
  }
  std::vector<double> ends;
};

void draw_from(const GradientLaw& law, Dice& dice, std::span<float> tensor) {
  const Cumulative histogram(law.bins);
  const double scale = law.scale, shape = law.shape;
  const double deviation = scale * std::sqrt(std::numbers::pi / 2);  // gaussian
  for (float& x : tensor) {
    double magnitude = 0;
    switch (law.kind) {
      case GradientLaw::Kind::laplace:
        magnitude = -scale * std::log(unit(dice));
        break;
      case GradientLaw::Kind::gaussian:
        magnitude = std::abs(deviation * normal(dice));
        break;
      case GradientLaw::Kind::gamma:
        magnitude = scale / shape * gamma(dice, shape);
        break;
      case GradientLaw::Kind::pareto:
        magnitude = scale * (1 - shape) / shape * (std::pow(unit(dice), -shape) - 1);
        break;
      case GradientLaw::Kind::measured:
        magnitude = histogram.draw(dice, law.bins);
        break;
    }
    x = static_cast<float>(dice.next() >> 63 != 0 ? -magnitude : magnitude);
  }
}

}  // namespace

std::string GradientLaw::why_wrong() const {
  if (kind == Kind::gamma && !(shape > 0.01 && shape < 100)) return "shapes are from 0.01 to 100";
  if (kind == Kind::pareto && !(shape > 0 && shape < 1)) return "shapes are between 0 and 1";
  if (kind != Kind::measured) return "";
  double sum = 0, last = 0;
  for (const Bin& bin : bins) {
    if (!(bin.up_to > last) || !(bin.count >= 0)) return "bins go upwards, with counts from 0 on";
    last = bin.up_to;
    sum += bin.count;
  }
  return sum > 0 ? "" : "the histogram is empty";
}

GradientLaw GradientLaw::in(std::uint32_t iteration) const {
  GradientLaw law = *this;
  law.drift = {};
  const double steps = std::min(iteration, drift.until);
  const double factor = std::pow(drift.scale, steps);
  law.scale *= factor;
  for (Bin& bin : law.bins) bin.up_to *= factor;
  law.shape *= std::pow(drift.shape, steps);
  return law;
}

void GradientLaw::draw(std::uint64_t seed, std::span<float> tensor) const {
  Dice dice(seed);
  draw_from(*this, dice, tensor);
}

bool GradientLaws::drift() const {
  return std::any_of(laws.begin(), laws.end(),
                     [](const GradientLaw& law) { return law.drift.moves(); });
}

std::uint64_t GradientLaws::elements() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.elements;
  return sum;
}

void GradientLaws::draw(std::uint64_t seed, std::uint32_t iteration, std::uint64_t first,
                        std::uint64_t elements, std::span<float> sample) const {
  Dice dice(seed);
  if (parts.empty()) return draw_from(laws.front().in(iteration), dice, sample);
  // Element i of the sample stands for the gradient at first + floor(i * elements / its size), so
  // the first one at or beyond a distance is i = ceil(distance * size / elements).
  const auto passed = [&](std::uint64_t distance) {
    return static_cast<std::size_t>(
        std::ceil(static_cast<double>(distance) * static_cast<double>(sample.size()) /
                  static_cast<double>(elements)));
  };
  std::uint64_t end = 0;  // of the part
  std::size_t drawn = 0;
  for (const Part& part : parts) {
    end += part.elements;
    if (end <= first) continue;
    const std::size_t until =
        end >= first + elements ? sample.size() : std::min(sample.size(), passed(end - first));
    draw_from(laws[part.law].in(iteration), dice, sample.subspan(drawn, until - drawn));
    drawn = until;
    if (drawn == sample.size()) return;
  }
}

}  // namespace ghostrank
