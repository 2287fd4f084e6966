#include "emulator/run_length.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "emulator/result/kept_iterations.h"

namespace ghostrank {
namespace {

constexpr double kPartSeconds = 10;      // wall, of a part in real time
constexpr std::int64_t kLeastPart = 10;  // iterations, however long they take
constexpr std::int64_t kMostPart = 100'000;
// Looking at the interval after every iteration would end the run at a moment of chance, so each
// part adds this share of the iterations at least.
constexpr double kLeastGrowth = 0.1;
constexpr std::int64_t kMostToInterval = KeptIterations::kMost;  // the result keeps them all
constexpr std::int64_t kMostNumbered = 2'000'000'000;            // they are numbered in 32 bits

std::uint32_t part_of(double iterations) {
  const double most = static_cast<double>(kMostPart);
  return static_cast<std::uint32_t>(std::clamp(std::ceil(iterations), 1.0, most));
}

std::string as_percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g %%", 100 * share);
  return text.data();
}

}  // namespace

RunLength::RunLength(const RunEnd& end, int least, bool virtual_time, bool deterministic)
    : end_(end), least_(least), virtual_(virtual_time), deterministic_(deterministic) {}

std::uint32_t RunLength::end(EndedBy by) {
  ended_by_ = by;
  return 0;
}

std::uint32_t RunLength::next(double wall, double emulated, double step_wall) {
  if (steps_.count() == 0) {
    const double left = end_.duration > 0 ? end_.duration : 0;
    const double by_time =
        virtual_ || step_wall <= 0 ? 0 : std::min(left, kPartSeconds) / step_wall;
    return part_of(std::max(static_cast<double>(least_), by_time));
  }
  if (steps_.count() >= kMostNumbered) return end(EndedBy::iterations);
  return end_.duration > 0 ? next_by_time(wall, emulated) : next_by_interval(wall);
}

// The last iteration begins before the time is over.
std::uint32_t RunLength::next_by_time(double wall, double emulated) {
  const auto n = static_cast<double>(steps_.count());
  const double spent = virtual_ ? emulated : wall, left = end_.duration - spent;
  if (steps_.count() < least_) return part_of(static_cast<double>(least_) - n);
  if (left <= 0) return end(EndedBy::duration);
  const double fit = spent > 0 ? left / spent * n : n;
  if (virtual_) return part_of(fit);
  const double part = wall > 0 ? std::max<double>(kLeastPart, kPartSeconds / wall * n) : n;
  return part_of(std::min(fit, part));
}

std::uint32_t RunLength::next_by_interval(double wall) {
  const std::int64_t count = steps_.count();
  const auto n = static_cast<double>(count);
  if (count < least_) return part_of(static_cast<double>(least_) - n);
  const double half = half_width().value_or(0);
  if (deterministic_) return end(EndedBy::deterministic);
  if (half <= end_.ci95) return end(EndedBy::interval);
  if (count >= kMostToInterval) return end(EndedBy::iterations);
  const double room = wall > 0 ? std::floor((end_.max_seconds - wall) / wall * n) : n;
  if (room < 1) return end(EndedBy::max_seconds);
  // The interval shrinks with the root of the number.
  const double wanted = n * (half / end_.ci95) * (half / end_.ci95) - n;
  const double more = std::clamp(wanted, kLeastGrowth * n, n);
  return part_of(std::min({more, room, static_cast<double>(kMostToInterval) - n}));
}

double RunLength::fraction(double iterations, double wall) const {
  const auto share = [](double of, double all) { return all > 0 ? std::min(1.0, of / all) : 1; };
  if (end_.duration > 0) {
    const double spent = virtual_ ? iterations * steps_.mean() : wall;
    return std::min(share(spent, end_.duration), share(iterations, static_cast<double>(least_)));
  }
  const double played = share(iterations, static_cast<double>(least_));
  const std::optional<double> half = half_width();
  if (!half || deterministic_) return played;
  const double near = share(end_.ci95 * end_.ci95, *half * *half);
  return std::min(played, std::max(near, share(wall, end_.max_seconds)));
}

std::string RunLength::why() const {
  const std::string interval = "the 95 % interval of the mean step is ± " +
                               as_percent(half_width().value_or(0)) + " after " +
                               std::to_string(steps_.count()) + " iterations";
  switch (ended_by_) {
    case EndedBy::interval:
      return "run.until: " + interval;
    case EndedBy::max_seconds:
      return "run.until.max_seconds ended the run: " + interval + ", not ± " +
             as_percent(end_.ci95);
    case EndedBy::deterministic:
      return "run.until: virtual time, and nothing varies by chance, so no more than the fewest "
             "iterations were played";
    case EndedBy::iterations:
      return end_.duration > 0 ? "run.duration: no more iterations than these can be numbered"
                               : "run.until: no more iterations than these are played: " + interval;
    case EndedBy::duration:
    case EndedBy::nothing:
      break;
  }
  return "";
}

}  // namespace ghostrank
