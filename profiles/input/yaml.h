// YAML as plain values that remember where they were written. JSON is YAML, so result files are
// read here too.
//
// Input is not trusted: size, nesting and the number of nodes (aliases expanded) are bounded;
// duplicate keys, tags and malformed input give an Error(usage) of the form
// "FILE:LINE:COL: what is wrong; what to do". Only yaml.cpp sees yaml-cpp.
//
// Threading: plain values; parsing keeps no state.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

inline constexpr std::size_t kMaxYamlBytes = 64 << 20;
inline constexpr std::size_t kMaxYamlNodes = 500'000;  // aliases count expanded
inline constexpr std::size_t kMaxYamlText = 64 << 20;  // bytes of all scalars, aliases expanded
inline constexpr int kMaxYamlDepth = 32;

// Where values come from: a file, a -s flag or an environment variable.
struct Source {
  std::string name;    // how errors call it: "job.yaml", "-s 'run.seed=x'"
  std::string origin;  // how --print-config calls it: "job.yaml", "-s", "GHOSTRANK_RUN_SEED"
  bool has_lines = true;
};

struct Mark {
  std::shared_ptr<const Source> source;
  int line = 1, column = 1;  // from 1
};

std::string location(const Mark& mark);  // "job.yaml:3:7", "-s 'run.seed=x'"
std::string origin(const Mark& mark);    // "job.yaml:3", "-s"

struct YamlValue {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;  // a scalar written in quotes is a string
  std::string text;     // scalar
  Mark mark;
  std::string key;  // of a map's child
  Mark key_mark;
  std::vector<YamlValue> children;  // of a list or map, in the order of the file

  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::list; }
  bool is_scalar() const { return kind == Kind::scalar; }
  const YamlValue* find(std::string_view name) const;  // child of a map by key; null: there is none
  YamlValue* find(std::string_view name);
};

// Describes a value for messages: "a list", "a mapping", "nothing", "'text'".
std::string description(const YamlValue& value);
// 'text' fit for a message: cut when long, control characters replaced.
std::string quote(std::string_view text);

// Throws Error(usage) "LOCATION: what; remedy".
[[noreturn]] void fail(const Mark& mark, const std::string& what);

YamlValue parse_yaml(std::string_view text, std::shared_ptr<const Source> source);

YamlValue parse_yaml_file(const std::string& path);

}  // namespace ghostrank
