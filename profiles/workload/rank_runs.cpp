#include "profiles/workload/rank_runs.h"

#include <algorithm>
#include <charconv>

namespace ghostrank {
namespace {

// Removes a number from the front of `text`; empty if there is none.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string runs_of(std::span<const WorldRank> ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    const int stride = first + 1 < ranks.size() ? ranks[first + 1] - ranks[first] : 0;
    std::size_t last = first;
    while (stride > 0 && last + 1 < ranks.size() && ranks[last + 1] - ranks[last] == stride) ++last;
    // Two ranks further apart than 1 are written singly, because the second may begin a longer run.
    if (last == first + 1 && stride > 1 && last + 1 < ranks.size()) last = first;
    text += (text.empty() ? "" : " ") + to_string(ranks[first]);
    if (last > first) text += "-" + to_string(ranks[last]);
    if (last > first && stride > 1) text += "/" + std::to_string(stride);
    first = last + 1;
  }
  return text;
}

std::optional<std::vector<WorldRank>> parse_runs(std::string_view text, int ranks) {
  std::vector<WorldRank> out;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    const auto first = take_number(text);
    auto last = first;
    std::optional<int> stride = 1;
    if (take(text, '-')) {
      last = take_number(text);
      if (take(text, '/')) stride = take_number(text);
    }
    if (!first || !last || !stride || *stride < 1 || *last < *first || *last >= ranks)
      return std::nullopt;
    if (!text.empty() && text.front() != ' ') return std::nullopt;
    const int more = (*last - *first) / *stride + 1;
    if (std::ssize(out) + more > ranks) return std::nullopt;
    for (int i = 0; i < more; ++i) out.emplace_back(*first + i * *stride);
  }
  if (out.empty()) return std::nullopt;
  return out;
}

}  // namespace ghostrank
