// Numbers as people read them: "312.4 ms", "6.2 GiB", "1,234,567". Sizes are powers of 1024 and say
// so (KiB), rates are decimal as links are sold. Four significant digits, never more than measured.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ghostrank {

std::string humane_seconds(double seconds);  // "312.4 ms", "2 min 13 s"
std::string humane_bytes(double bytes);      // "6.2 GiB", "512 B"
std::string humane_count(double count);      // "1,234,567", "12.5"
std::string humane_count(double count, const std::string& noun,
                         const std::string& plural = "");  // "1 node", "2 nodes"
// A mean of whole numbers: "74 messages", "about 75 messages" for 74.67.
std::string humane_mean_count(double mean, const std::string& noun);
std::string humane_percent(double share);               // 0.0123 -> "1.23 %"
std::string humane_bits(double bits_per_second);        // "400 Gb/s"
std::string significant(double value, int digits = 4);  // "0.01234", "1234"

}  // namespace ghostrank
