// Reads JSON files that someone else may have written: a result that was edited, made by another
// version, or by nobody's program. The type of every value is checked where it is read. Errors name
// the file and the path.
//
// Threading: pure functions, except read_json(), which reads a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace ghostrank {

// Keys are sorted, so that a file with very many is read in reasonable time.
using SortedJson = nlohmann::json;

// Throws Error(usage) "FILE:LINE:COL: ..." when the file is no JSON, is nested more deeply than
// kMostNesting, or holds a number that is too large. `remedy` says what to give instead.
SortedJson read_json(const std::string& file, const std::string& remedy);
inline constexpr int kMostNesting = 100;

// A value with its file and path, for error messages. A key that is not there reads as null. What
// has another type than asked for throws Error(usage).
class Field {
 public:
  Field(const SortedJson& json, std::string file, std::string path = "")
      : json_(json), file_(std::move(file)), path_(std::move(path)) {}

  Field operator[](const std::string& key) const;
  std::vector<Field> items() const;                            // null: none
  std::vector<std::pair<std::string, Field>> members() const;  // likewise
  bool missing() const { return json_.is_null(); }
  const SortedJson& json() const { return json_; }

  std::optional<double> number() const;
  double number_or(double otherwise) const { return number().value_or(otherwise); }
  std::uint64_t count() const;  // a whole number from 0 on, or rounded to it; null: 0
  int small() const;            // as count(), that fits
  std::string text() const;     // null: ""
  bool truth() const;           // null: false
  std::vector<std::string> texts() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  const SortedJson& json_;
  std::string file_, path_;
};

}  // namespace ghostrank
