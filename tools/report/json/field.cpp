#include "tools/report/json/field.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiles/error.h"
#include "profiles/input/input_file.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::string place(const std::string& file, const std::string& text, std::size_t at) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < std::min(at, text.size()); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

// Where a JSON text is nested too deeply, counted from 1; 0: nowhere.
std::size_t too_deep(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostNesting) return i + 1;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return 0;
}

}  // namespace

SortedJson read_json(const std::string& file, const std::string& remedy) {
  const std::string text = read_input(file, remedy, kMostBytes);
  try {
    SortedJson json = SortedJson::parse(text);
    if (const std::size_t at = too_deep(text); at > 0)
      throw Error(place(file, text, at) + ": nested more than " + std::to_string(kMostNesting) +
                  " deep; " + remedy);
    return json;
  } catch (const SortedJson::parse_error& error) {
    throw Error(place(file, text, error.byte) + ": not valid JSON; " + remedy);
  } catch (const SortedJson::out_of_range&) {
    throw Error(file + ": a number in it is too large; " + remedy);
  }
}

Field Field::operator[](const std::string& key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  static const SortedJson nothing;
  if (json_.is_null()) return {nothing, file_, path};
  if (!json_.is_object()) fail("is not an object");
  const auto found = json_.find(key);
  return {found == json_.end() ? nothing : *found, file_, path};
}

std::vector<Field> Field::items() const {
  std::vector<Field> list;
  if (json_.is_null()) return list;
  if (!json_.is_array()) fail("is not a list");
  for (std::size_t i = 0; i < json_.size(); ++i)
    list.emplace_back(json_[i], file_, path_ + "[" + std::to_string(i) + "]");
  return list;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  std::vector<std::pair<std::string, Field>> list;
  if (json_.is_null()) return list;
  if (!json_.is_object()) fail("is not an object");
  for (const auto& [key, value] : json_.items())
    list.emplace_back(key, Field(value, file_, path_.empty() ? key : path_ + "." + key));
  return list;
}

std::optional<double> Field::number() const {
  if (json_.is_null()) return std::nullopt;
  if (!json_.is_number()) fail("is not a number");
  return json_.get<double>();
}

std::uint64_t Field::count() const {
  constexpr double kMost = 9.2e18;
  const double value = number_or(0);
  if (value < 0 || value > kMost) fail("is no count");
  return json_.is_number_unsigned() ? json_.get<std::uint64_t>()
                                    : static_cast<std::uint64_t>(std::llround(value));
}

int Field::small() const {
  const std::uint64_t value = count();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) fail("is too large");
  return static_cast<int>(value);
}

std::string Field::text() const {
  if (json_.is_null()) return "";
  if (!json_.is_string()) fail("is not a text");
  return json_.get<std::string>();
}

bool Field::truth() const {
  if (json_.is_null()) return false;
  if (!json_.is_boolean()) fail("is neither true nor false");
  return json_.get<bool>();
}

std::vector<std::string> Field::texts() const {
  std::vector<std::string> list;
  for (const Field& one : items()) list.push_back(one.text());
  return list;
}

void Field::fail(const std::string& what) const {
  throw Error(file_ + ": " + (path_.empty() ? "the document" : path_) + " " + what);
}

}  // namespace ghostrank
