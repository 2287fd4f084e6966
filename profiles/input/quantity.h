// Numbers, link rates and sizes as people write them, and back. Text from the *_text functions
// reads back as the same value, except that measured_rate_text() rounds.
//
// Units: rates are bits per second, decimal ("400Gbps"); sizes are bytes, powers of 1024 ("512KiB",
// "4K"); durations are seconds with a unit: s, m, h, d. Nothing here throws: text that is not a
// quantity gives nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite only
std::optional<bool> parse_boolean(std::string_view text);   // true | false
std::optional<double> parse_rate(std::string_view text);    // "0" and "unlimited" are 0
std::optional<std::uint64_t> parse_size(std::string_view text);
std::optional<double> parse_duration(std::string_view text);  // "90s", "24h": seconds

// "0-3,8" -> 0, 1, 2, 3, 8: numbers from 0 to `most`, ascending and each once.
std::optional<std::vector<int>> parse_number_list(std::string_view text, int most);
std::string number_list_text(const std::vector<int>& ascending);

std::string number_text(double value);  // shortest that reads back the same
std::string rate_text(double bits_per_second);
std::string measured_rate_text(double bits_per_second);  // with six digits
std::string size_text(std::uint64_t bytes);

}  // namespace ghostrank
