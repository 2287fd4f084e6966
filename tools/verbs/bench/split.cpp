// See bench/split.h.
#include "tools/verbs/bench/split.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "profiles/error.h"

namespace ghostrank {
namespace {

struct Operation {
  std::string_view word, sign;
  std::uint64_t (*colour)(std::uint64_t rank, std::uint64_t value);
};
constexpr std::array kOperations{
    Operation{"and", "&", [](std::uint64_t rank, std::uint64_t value) { return rank & value; }},
    Operation{"or", "|", [](std::uint64_t rank, std::uint64_t value) { return rank | value; }},
    Operation{"mod", "%", [](std::uint64_t rank, std::uint64_t value) { return rank % value; }},
    Operation{"div", "/", [](std::uint64_t rank, std::uint64_t value) { return rank / value; }}};

// "8", "0x7", "0b111", with blanks before.
std::optional<std::uint64_t> number_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const int base = text.starts_with("0x") ? 16 : text.starts_with("0b") ? 2 : 10;
  if (base != 10) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Rule {
  const Operation* operation;
  std::uint64_t value;
};

std::optional<Rule> rule_of(const std::string& text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Operation& operation : kOperations) {
    for (const std::string_view name : {operation.word, operation.sign}) {
      if (!lower.starts_with(name)) continue;
      const auto value = number_of(std::string_view(lower).substr(name.size()));
      const bool divides = operation.word == "mod" || operation.word == "div";
      if (!value || (divides && *value == 0)) return std::nullopt;
      return Rule{&operation, *value};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::vector<WorldRank>> split_ranks(const std::string& rule, int ranks) {
  const auto parsed = rule_of(rule);
  if (!parsed)
    throw Error("NCCL_TESTS_SPLIT '" + rule +
                "' is no rule; write AND, OR, MOD or DIV and a number, as in 'MOD 8'");
  std::map<std::uint64_t, std::vector<WorldRank>> by_colour;
  for (const WorldRank r : each<WorldRank>(ranks))
    by_colour[parsed->operation->colour(r.index(), parsed->value)].push_back(r);
  std::vector<std::vector<WorldRank>> groups;
  for (auto& [colour, members] : by_colour) {
    if (!groups.empty() && members.size() != groups[0].size())
      throw Error("NCCL_TESTS_SPLIT '" + rule + "' makes groups of " +
                  std::to_string(groups[0].size()) + " and of " + std::to_string(members.size()) +
                  " ranks; choose a number that splits " + std::to_string(ranks) +
                  " ranks evenly, or other --ranks");
    groups.push_back(std::move(members));
  }
  return groups;
}

Split split_from_environment(int ranks) {
  const char* mask = std::getenv("NCCL_TESTS_SPLIT_MASK");
  const char* rule = std::getenv("NCCL_TESTS_SPLIT");
  if (mask != nullptr && *mask != '\0') {
    const std::string digits = mask;
    const std::string value =
        digits.starts_with("0x") || digits.starts_with("0X") ? digits : "0x" + digits;
    return {"NCCL_TESTS_SPLIT_MASK=" + digits, split_ranks("AND " + value, ranks)};
  }
  if (rule == nullptr || *rule == '\0') return {};
  return {"NCCL_TESTS_SPLIT=" + std::string(rule), split_ranks(rule, ranks)};
}

}  // namespace ghostrank
