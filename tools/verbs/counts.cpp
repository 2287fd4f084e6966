// See counts.h.
#include "tools/verbs/counts.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <vector>

#include "profiles/error.h"
#include "profiles/input/input_file.h"

namespace ghostrank {
namespace {

constexpr std::string_view kBetween = ", \t\r\n";
constexpr std::uint64_t kMostElements = 1ULL << 40;  // per block

bool is_list(const std::string& text) {
  return text.find_first_not_of("0123456789, ") == std::string::npos;
}

std::uint64_t parse_count(std::string_view word, std::size_t index) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (error != std::errc{} || end != word.data() + word.size() || count > kMostElements) {
    throw Error("--counts: '" + std::string(word.substr(0, 40)) + "', number " +
                std::to_string(index + 1) +
                " of the list, is no number of elements from 0 to 2^40");
  }
  return count;
}

std::vector<std::uint64_t> parse_list(std::string_view text) {
  std::vector<std::uint64_t> counts;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    counts.push_back(parse_count(text.substr(at, end - at), counts.size()));
    at = end;
  }
  return counts;
}

}  // namespace

Counts parse_counts(const std::string& text, Func func, int ranks) {
  const std::string name(name_of(func));
  if (!is_ragged(func)) {
    if (text.empty()) return nullptr;
    throw Error("--counts belongs to all_gather_v and all_to_all_v; " + name + " takes --count");
  }
  const std::size_t needed = counts_needed(func, ranks);
  const std::string wanted =
      name + " of " + std::to_string(ranks) + " ranks needs " + std::to_string(needed) +
      (func == Func::all_gather_v ? " counts, one for each rank"
                                  : " counts, row by row what each rank sends to each");
  if (text.empty()) throw Error(wanted + "; give them with --counts 5,0,7,... or --counts FILE");
  std::vector<std::uint64_t> counts = parse_list(
      is_list(text) ? text
                    : read_input(text, "--counts takes a list such as 5,0,7, or a file with one"));
  if (counts.size() != needed)
    throw Error("--counts has " + std::to_string(counts.size()) + " numbers; " + wanted);
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

Counts shrink(const Counts& counts, std::uint64_t most) {
  if (!counts || counts->empty()) return counts;
  const std::uint64_t longest = *std::max_element(counts->begin(), counts->end());
  if (longest <= most) return counts;
  const std::uint64_t divisor = (longest + most - 1) / most;
  std::vector<std::uint64_t> shorter;
  for (const std::uint64_t count : *counts) shorter.push_back((count + divisor - 1) / divisor);
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(shorter));
}

}  // namespace ghostrank
