#include "tools/benchmarks/found.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "tools/text/statistics.h"

namespace ghostrank::bench {

void Found::add(const std::string& benchmark, const std::string& counter, double value) {
  values_[benchmark][counter].push_back(value);
}

const std::vector<double>* Found::find(const std::string& benchmark,
                                       const std::string& counter) const {
  const auto counters = values_.find(benchmark);
  if (counters == values_.end()) return nullptr;
  const auto values = counters->second.find(counter);
  return values == counters->second.end() ? nullptr : &values->second;
}

std::optional<double> Found::median(const std::string& benchmark,
                                    const std::string& counter) const {
  const auto* values = find(benchmark, counter);
  return values ? summarize(*values).median : std::nullopt;
}

std::optional<double> Found::least(const std::string& benchmark, const std::string& counter) const {
  const auto* values = find(benchmark, counter);
  return values ? std::optional(std::ranges::min(*values)) : std::nullopt;
}

std::optional<double> Found::most(const std::string& benchmark, const std::string& counter) const {
  const auto* values = find(benchmark, counter);
  return values ? std::optional(std::ranges::max(*values)) : std::nullopt;
}

std::vector<std::pair<double, double>> Found::curve(const std::string& name,
                                                    const std::string& counter) const {
  std::vector<std::pair<double, double>> points;
  for (const auto& [benchmark, counters] : values_) {
    if (!benchmark.starts_with(name + "/")) continue;
    const auto values = counters.find(counter);
    const std::string argument = benchmark.substr(name.size() + 1);
    double x = 0;
    const auto read = std::from_chars(argument.data(), argument.data() + argument.size(), x);
    if (values != counters.end() && read.ptr == argument.data() + argument.size())
      points.emplace_back(x, *summarize(values->second).median);
  }
  std::sort(points.begin(), points.end());
  return points;
}

std::string figure(std::optional<double> value, int decimals, double unit) {
  if (!value) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, *value / unit);
  return text;
}

std::string ratio(std::optional<double> value, std::optional<double> of) {
  if (!value || !of || *of == 0) return "-";
  const double times = *value / *of;
  return figure(times, times < 10 ? 2 : 0);
}

}  // namespace ghostrank::bench
