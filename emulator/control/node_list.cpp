#include "emulator/control/node_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace ghostrank {
namespace {

using Names = std::vector<std::string>;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "08-10" -> 08, 09, 10.
bool expand_range(std::string_view range, Names& out) {
  const std::size_t dash = range.find('-');
  const std::string_view first_text = range.substr(0, dash);
  const auto first = number(first_text);
  const auto last = dash == range.npos ? first : number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last - *first >= kMaxListedNodes - out.size())
    return false;
  for (std::uint64_t n = *first; n <= *last; ++n) {
    const std::string digits = std::to_string(n);
    out.push_back(std::string(std::max(digits.size(), first_text.size()) - digits.size(), '0') +
                  digits);
  }
  return true;
}

// "1-3,7" -> 1, 2, 3, 7.
bool expand_brackets(std::string_view inside, Names& out) {
  for (;;) {
    const std::size_t comma = inside.find(',');
    if (!expand_range(inside.substr(0, comma), out)) return false;
    if (comma == inside.npos) return true;
    inside.remove_prefix(comma + 1);
  }
}

bool append_each(Names& names, const Names& endings) {
  if (names.size() * endings.size() > kMaxListedNodes) return false;
  Names all;
  for (const std::string& name : names)
    for (const std::string& ending : endings) all.push_back(name + ending);
  names = std::move(all);
  return true;
}

// Takes one name or pattern, which may have several brackets, from the front of `text`.
bool expand_one(std::string_view& text, Names& out) {
  Names names{""};
  bool any = false;
  while (!text.empty() && text.front() != ',') {
    any = true;
    const std::size_t end = std::min(text.find_first_of("[],"), text.size());
    if (end > 0) {
      if (!append_each(names, {std::string(text.substr(0, end))})) return false;
      text.remove_prefix(end);
      continue;
    }
    const std::size_t close = text.find(']');
    Names inside;
    if (text.front() != '[' || close == text.npos ||
        !expand_brackets(text.substr(1, close - 1), inside) || !append_each(names, inside))
      return false;
    text.remove_prefix(close + 1);
  }
  if (!any || out.size() + names.size() > kMaxListedNodes) return false;
  out.insert(out.end(), names.begin(), names.end());
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> expand_node_list(std::string_view text) {
  Names names;
  for (;;) {
    if (!expand_one(text, names)) return std::nullopt;
    if (text.empty()) return names;
    text.remove_prefix(1);  // the comma
  }
}

}  // namespace ghostrank
