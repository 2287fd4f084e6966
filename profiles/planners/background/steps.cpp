#include "profiles/planners/background/steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kLongestCycle = 100'000, kMostPrograms = 256;

// Which of its `over` parts a background transfers in an iteration; empty: none.
std::optional<int> part_in(const Background& background, std::uint64_t iteration) {
  const std::uint64_t every = background.every;
  if (iteration + 1 < every) return std::nullopt;
  const auto since = static_cast<int>((iteration + 1) % every);
  return since < background.over ? std::optional(since) : std::nullopt;
}

}  // namespace

std::vector<StepVariant> order_variants(const JobSpec& spec, Workload& workload) {
  std::size_t bases = 1;
  for (const Role& role : workload.roles) bases = std::max(bases, role.iterations.size());
  // The plan may have an order of its own, which repeats after `own` steps.
  const std::uint64_t own = workload.order.empty() ? 1 : workload.cycle;
  std::uint64_t cycle = own;
  std::uint64_t settled = workload.order.empty() ? bases - 1 : workload.order.size() - own;
  for (const Background& b : spec.background) {
    cycle = std::lcm(cycle, static_cast<std::uint64_t>(b.every));
    settled = std::max(settled, static_cast<std::uint64_t>(b.every) - 1);
    if (cycle > kLongestCycle)
      throw Error(b.source + ": the values of every" +
                  (own > 1 ? " and the plan's own " + std::to_string(own) + " steps" : "") +
                  " coincide again after " + std::to_string(cycle) + " steps only, at most " +
                  std::to_string(kLongestCycle) + " are supported; choose multiples of one number");
  }
  std::vector<StepVariant> all;
  std::map<StepVariant, std::uint64_t> steady;
  for (std::uint64_t i = 0; i < settled + cycle; ++i) {
    StepVariant variant{std::min(program_number(workload, i), bases - 1), {}};
    for (const Background& b : spec.background) variant.part.push_back(part_in(b, i));
    if (i >= settled) ++steady[variant];
    all.push_back(std::move(variant));
  }
  const auto rarer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const StepVariant last = std::max_element(steady.begin(), steady.end(), rarer)->first;
  std::vector<StepVariant> variants;
  std::map<StepVariant, std::uint32_t> number;
  for (const StepVariant& variant : all)
    if (variant != last &&
        number.emplace(variant, static_cast<std::uint32_t>(variants.size())).second)
      variants.push_back(variant);
  number.emplace(last, static_cast<std::uint32_t>(variants.size()));
  variants.push_back(last);
  if (variants.size() > kMostPrograms)
    throw Error(spec.background.front().source + ": " + std::to_string(variants.size()) +
                " steps differ from each other, at most " + std::to_string(kMostPrograms) +
                " are supported; " +
                (own > 1 ? "choose an every that divides the plan's own " + std::to_string(own) +
                               " steps, or leave background out"
                         : "lower over"));
  workload.order.clear();
  for (const StepVariant& variant : all) workload.order.push_back(number.at(variant));
  workload.cycle = static_cast<std::uint32_t>(cycle);
  return variants;
}

}  // namespace ghostrank
