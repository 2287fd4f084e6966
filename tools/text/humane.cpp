// See humane.h.
#include "tools/text/humane.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace ghostrank {
namespace {

struct Scale {
  double unit;
  const char* name;
};

std::string scaled(double value, const Scale* begin, const Scale* end) {
  const Scale* scale = begin;
  // 0.99995: a value that would round to "1000 ms" is printed as "1 s".
  while (scale + 1 != end && std::abs(value) >= (scale + 1)->unit * 0.99995) ++scale;
  return significant(value / scale->unit) + " " + scale->name;
}

std::string long_time(double seconds) {
  const auto total = static_cast<long long>(std::llround(seconds));
  std::array<char, 48> text{};
  if (total < 3600) {
    std::snprintf(text.data(), text.size(), "%lld min %lld s", total / 60, total % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld h %lld min", total / 3600, total % 3600 / 60);
  }
  return text.data();
}

}  // namespace

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return "0";
  const double size = std::abs(value);
  int decimals = digits - 1 - static_cast<int>(std::floor(std::log10(size)));
  if (decimals < 0) decimals = 0;
  if (decimals > 12) decimals = 12;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  std::string result = text.data();
  if (result.find('.') != std::string::npos) {
    result.erase(result.find_last_not_of('0') + 1);
    if (result.back() == '.') result.pop_back();
  }
  return result == "-0" ? "0" : result;
}

std::string humane_seconds(double seconds) {
  static constexpr std::array<Scale, 4> kScales{
      {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}}};
  if (!std::isfinite(seconds)) return "n/a";
  if (seconds == 0) return "0 s";
  if (seconds > 0 && seconds < 1e-9) return "< 1 ns";
  if (seconds >= 120) return long_time(seconds);
  return scaled(seconds, kScales.data(), kScales.data() + kScales.size());
}

std::string humane_bytes(double bytes) {
  static constexpr double kK = 1024;
  static constexpr std::array<Scale, 6> kScales{{{1, "B"},
                                                 {kK, "KiB"},
                                                 {kK * kK, "MiB"},
                                                 {kK * kK * kK, "GiB"},
                                                 {kK * kK * kK * kK, "TiB"},
                                                 {kK * kK * kK * kK * kK, "PiB"}}};
  return scaled(bytes, kScales.data(), kScales.data() + kScales.size());
}

std::string humane_bits(double bits_per_second) {
  static constexpr std::array<Scale, 5> kScales{
      {{1, "b/s"}, {1e3, "kb/s"}, {1e6, "Mb/s"}, {1e9, "Gb/s"}, {1e12, "Tb/s"}}};
  return scaled(bits_per_second, kScales.data(), kScales.data() + kScales.size());
}

std::string humane_count(double count) {
  if (!std::isfinite(count)) return "n/a";
  if (std::abs(count) < 1000 || std::abs(count) >= 1e18) return significant(count);
  const std::string digits = std::to_string(std::llround(std::abs(count)));
  std::string text = count < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string humane_count(double count, const std::string& noun, const std::string& plural) {
  const std::string many = plural.empty() ? noun + "s" : plural;
  return humane_count(count) + " " + (count == 1 ? noun : many);
}

std::string humane_mean_count(double mean, const std::string& noun) {
  const double whole = std::round(mean);
  if (std::abs(mean - whole) < 1e-9 * std::max(1.0, std::abs(mean)))
    return humane_count(whole, noun);
  if (mean < 1) return "less than 1 " + noun;
  return "about " + humane_count(whole, noun);
}

std::string humane_percent(double share) { return significant(share * 100, 3) + " %"; }

}  // namespace ghostrank
