#include "tools/compare/ab/spec.h"

#include <algorithm>
#include <cctype>

#include "profiles/error.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

bool is_key_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

// Whether a setting begins at `at`: letters of a key, then '='.
bool is_setting_at(const std::string& text, std::size_t at) {
  const std::size_t begin = at;
  while (at < text.size() && is_key_letter(text[at])) ++at;
  return at > begin && at < text.size() && text[at] == '=';
}

bool is_separator(char c) { return c == ' ' || c == ',' || c == '\t' || c == '\n'; }

// A number, or a number and '%'.
std::optional<double> parse_share(std::string text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.pop_back();
  const std::optional<double> number = parse_number(text);
  if (!number) return std::nullopt;
  return percent ? *number / 100 : *number;
}

std::size_t variant_named(const std::string& name, const std::string& text,
                          const std::vector<Variant>& variants) {
  std::string known;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].name == name) return i;
    known += (i > 0 ? ", " : "") + variants[i].name;
  }
  throw Error("--expect '" + text + "': there is no variant '" + name + "'; variants are " + known);
}

}  // namespace

std::vector<std::string> parse_settings(const std::string& flag, const std::string& text) {
  std::vector<std::string> settings;
  std::size_t begin = 0;
  while (begin < text.size() && is_separator(text[begin])) ++begin;
  while (begin < text.size()) {
    if (!is_setting_at(text, begin)) {
      throw Error(flag + " '" + text + "': '" + text.substr(begin) +
                  "' is no KEY=VALUE; write for example collectives.allreduce=ring");
    }
    int depth = 0;
    char quote = 0;
    std::size_t end = begin, next = text.size();
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (quote != 0) {
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (depth > 0 || !is_separator(c)) continue;
      next = end;
      while (next < text.size() && is_separator(text[next])) ++next;
      if (next == text.size() || is_setting_at(text, next)) break;
    }
    settings.push_back(text.substr(begin, end - begin));
    begin = end < text.size() ? next : end;
  }
  return settings;
}

Variant parse_variant(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (colon == std::string::npos || name.empty() ||
      std::isalnum(static_cast<unsigned char>(name[0])) == 0 ||
      !std::all_of(name.begin(), name.end(), is_key_letter)) {
    throw Error(
        "--variant '" + text +
        "': write NAME:'key=value key=value'; a name has letters, digits, '_', '.' and '-'");
  }
  return {name, parse_settings("--variant", text.substr(colon + 1))};
}

void check_variants(const std::vector<Variant>& variants) {
  if (variants.size() < 2) {
    throw Error(
        "one variant compares with nothing; give two or more: --a KEY=VALUE --b KEY=VALUE, "
        "or --variant NAME:'key=value' for each");
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (variants[k].name == variants[i].name)
        throw Error("two variants are named '" + variants[i].name +
                    "'; give each a name of its own");
    }
  }
}

double parse_until(const std::string& text) {
  if (text.starts_with("ci<")) {
    if (const auto share = parse_share(text.substr(3)); share && *share > 0) return *share;
  }
  throw Error("--until '" + text +
              "': write ci<1% or ci<0.01, a bound above 0 on half the width "
              "of the intervals");
}

double parse_margin(const std::string& text) {
  const std::optional<double> share = parse_share(text);
  if (!share || *share < 0 || *share >= 1)
    throw Error("--margin '" + text + "': write a share from 0 to 1, as 0.01 or 1%");
  return *share;
}

RatioExpectation parse_ratio_expectation(const std::string& text,
                                         const std::vector<Variant>& variants) {
  const std::size_t sign = text.find_first_of("<>"), slash = text.find('/');
  const std::optional<double> bound =
      sign == std::string::npos ? std::nullopt : parse_number(text.substr(sign + 1));
  if (!bound || slash == std::string::npos || slash > sign)
    throw Error("--expect '" + text + "': write NAME/NAME<NUMBER or NAME/NAME>NUMBER, as b/a<0.6");
  return {text, variant_named(text.substr(0, slash), text, variants),
          variant_named(text.substr(slash + 1, sign - slash - 1), text, variants),
          text[sign] == '<', *bound};
}

}  // namespace ghostrank
