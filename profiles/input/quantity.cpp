#include "profiles/input/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ghostrank {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kRateUnits{Unit{"Tbps", 1e12}, Unit{"Gbps", 1e9}, Unit{"Mbps", 1e6},
                                Unit{"Kbps", 1e3},  Unit{"kbps", 1e3}, Unit{"bps", 1}};

constexpr std::array kTimeUnits{Unit{"s", 1}, Unit{"m", 60}, Unit{"h", 3600}, Unit{"d", 86400}};

constexpr double kKibi = 1024;
constexpr std::array kSizeUnits{Unit{"TiB", kKibi* kKibi* kKibi* kKibi},
                                Unit{"GiB", kKibi* kKibi* kKibi},
                                Unit{"MiB", kKibi* kKibi},
                                Unit{"KiB", kKibi},
                                Unit{"T", kKibi* kKibi* kKibi* kKibi},
                                Unit{"G", kKibi* kKibi* kKibi},
                                Unit{"M", kKibi* kKibi},
                                Unit{"K", kKibi},
                                Unit{"B", 1}};

constexpr double kLargestExact = 9007199254740992;  // 2^53

// "12.5Gbps" -> 12.5 and "Gbps"; a blank may stand between them.
std::optional<std::pair<double, std::string_view>> split(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::pair{value, unit};
}

template <std::size_t n>
std::optional<double> scaled(std::string_view text, const std::array<Unit, n>& units) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  for (const Unit& unit : units)
    if (unit.name == parts->second) return parts->first * unit.factor;
  return std::nullopt;
}

// Without an exponent, because parse_rate() reads none.
std::string fixed_text(double value) {
  std::array<char, 512> buffer{};
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return error == std::errc() ? std::string(buffer.data(), end) : "0";  // too small to matter
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::optional<double> parse_rate(std::string_view text) {
  if (text == "0" || text == "unlimited") return 0;
  return scaled(text, kRateUnits);
}

std::optional<double> parse_duration(std::string_view text) { return scaled(text, kTimeUnits); }

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::optional<double> bytes = scaled(text, kSizeUnits);
  if (!bytes) {
    const auto plain = parse_integer(text);
    if (!plain || *plain < 0) return std::nullopt;
    bytes = static_cast<double>(*plain);
  }
  if (*bytes > kLargestExact || *bytes != std::floor(*bytes)) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<std::vector<int>> parse_number_list(std::string_view text, int most) {
  std::vector<int> list;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > most) return std::nullopt;
    if (!list.empty() && *first <= list.back()) return std::nullopt;
    for (std::int64_t n = *first; n <= *last; ++n) list.push_back(static_cast<int>(n));
    if (part.size() == text.size()) return list;
    text.remove_prefix(part.size() + 1);
  }
}

std::string number_list_text(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < ascending.size(); first = last + 1) {
    for (last = first; last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1;)
      ++last;
    text += (text.empty() ? "" : ",") + std::to_string(ascending[first]);
    if (last > first) text += "-" + std::to_string(ascending[last]);
  }
  return text;
}

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const auto [end, error] =
      whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                            std::chars_format::fixed)
            : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  (void)error;  // 64 characters hold every double
  return {buffer.data(), end};
}

std::string rate_text(double bits_per_second) {
  if (bits_per_second == 0) return "unlimited";
  for (const Unit& unit : kRateUnits) {
    // Links are rated in Gb/s whatever their speed.
    if (unit.name == "Tbps" || bits_per_second < unit.factor) continue;
    std::string text = fixed_text(bits_per_second / unit.factor) + std::string(unit.name);
    if (parse_rate(text) == bits_per_second) return text;
  }
  return fixed_text(bits_per_second) + "bps";
}

std::string measured_rate_text(double bits_per_second) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.6g", bits_per_second);
  return rate_text(std::strtod(digits.data(), nullptr));
}

std::string size_text(std::uint64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (unit.name.size() == 3 && bytes >= factor && bytes % factor == 0)
      return std::to_string(bytes / factor) + std::string(unit.name);
  }
  return std::to_string(bytes);
}

}  // namespace ghostrank
