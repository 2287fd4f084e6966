// Tables of keys: what a job, model, device or cluster file may hold. One table gives the checks,
// the defaults, the error messages, --print-config, the reference in docs/ and the JSON schema, so
// these cannot disagree.
//
// A Settings object holds one checked value for every key of a table. Errors are Error(usage) and
// say where and what to do. Threading: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/yaml.h"
#include "profiles/units.h"

namespace ghostrank {

enum class KeyType : std::uint8_t {
  integer,
  number,
  boolean,
  string,
  choice,        // one of `allowed`
  auto_number,   // "auto" or a number
  auto_integer,  // "auto" or an integer
  rate,          // "400Gbps"
  size,          // "512KiB"
  integers,      // list of integers
  profile,       // a name, a path or a mapping; checked by its own table
  any,           // a list or mapping with a form of its own
};

// Instead of a default: the key must be given.
inline constexpr std::string_view kRequired = "<required>";
// Instead of a default: the key may be absent. Its Setting is then not `given`, and its text is
// empty.
inline constexpr std::string_view kAbsent = "<absent>";

// A condition of a key: it has an effect only beside these values of another key of the table.
struct Beside {
  std::string_view key = "", values = "";  // separated by blanks
  bool others = false;                     // all values but these
};

struct Key {
  std::string_view path;  // "cluster.nic.rate"
  KeyType type = KeyType::string;
  std::string_view standard = kAbsent;  // the default as YAML writes it, kRequired or kAbsent
  std::string_view doc;                 // one line
  double min = 0, max = 0;              // of a number; equal: not bounded
  std::string_view allowed = "";        // choices, separated by blanks
  // Choices that are not available yet; of a key that is not available, why.
  std::string_view later = "";
  bool available = true;  // false: only the default is accepted

  // Where the key has an effect, in words separated by blanks; empty: everywhere.
  std::string_view frameworks = "", libraries = "", fabrics = "";
  std::array<Beside, 2> beside{};  // all must hold
  bool schemes = false;            // only where a scheme plays a collective
  // ... one of these, separated by blanks, or a plugin's; empty: any
  std::string_view only_schemes = "";

  // A copy with one more condition: Key{...}.of("megatron").where("parallel.cp", ...).
  constexpr Key of(std::string_view frameworks_with_it) const;
  constexpr Key in(std::string_view libraries_with_it) const;
  constexpr Key on(std::string_view fabrics_with_it) const;
  constexpr Key where(std::string_view other, std::string_view values) const;
  constexpr Key unless(std::string_view other, std::string_view values) const;
  constexpr Key with_schemes(std::string_view only = "") const;
};

constexpr Key Key::of(std::string_view frameworks_with_it) const {
  Key key = *this;
  key.frameworks = frameworks_with_it;
  return key;
}

constexpr Key Key::in(std::string_view libraries_with_it) const {
  Key key = *this;
  key.libraries = libraries_with_it;
  return key;
}

constexpr Key Key::on(std::string_view fabrics_with_it) const {
  Key key = *this;
  key.fabrics = fabrics_with_it;
  return key;
}

constexpr Key Key::where(std::string_view other, std::string_view values) const {
  Key key = *this;
  key.beside[key.beside[0].key.empty() ? 0 : 1] = {other, values, false};
  return key;
}

constexpr Key Key::unless(std::string_view other, std::string_view values) const {
  Key key = *this;
  key.beside[key.beside[0].key.empty() ? 0 : 1] = {other, values, true};
  return key;
}

constexpr Key Key::with_schemes(std::string_view only) const {
  Key key = *this;
  key.schemes = true;
  key.only_schemes = only;
  return key;
}

struct Setting {
  const Key* key = nullptr;
  bool given = false;              // false: `text` is the default
  Mark mark;                       // without a source for a default
  std::string text;                // canonical
  double number = 0;               // every numeric type and boolean; rate: bits/s; size: bytes
  const YamlValue* raw = nullptr;  // as written; null for a default. Valid while the tree lives
};

class Settings {
 public:
  // Checks the mapping `root` against `table`; keys that `root` lacks get their default. `what`
  // names the kind of file ("job") in messages.
  Settings(const YamlValue& root, std::span<const Key> table, std::string_view what);

  const std::vector<Setting>& all() const { return settings_; }  // in the table's order
  const Setting& at(std::string_view path) const;

  bool given(std::string_view path) const { return at(path).given; }
  const std::string& text(std::string_view path) const { return at(path).text; }
  double number(std::string_view path) const { return at(path).number; }
  bool boolean(std::string_view path) const { return at(path).number != 0; }
  std::int64_t integer(std::string_view path) const {
    return static_cast<std::int64_t>(at(path).number);
  }
  int small(std::string_view path) const { return static_cast<int>(at(path).number); }
  Picoseconds micros(std::string_view path) const;
  std::vector<std::int64_t> integers(std::string_view path) const;

 private:
  std::vector<Setting> settings_;
};

// "; did you mean cluster.nodes?" or, when nothing is near, "; known here: nodes, nic.rate".
std::string suggestion(std::string_view path, std::span<const Key> table);

// What may have been meant: "a or b", up to three of `names` that begin with `name`; else the
// nearest within max(2, name.size() / 3) edits; empty: none. Puts `prefix` before each.
std::string nearest(std::string_view name, std::span<const std::string> names,
                    std::string_view prefix = "");

std::vector<std::string> words(std::string_view text);        // split at blanks
bool is_among(std::string_view list, std::string_view word);  // of words, split at blanks
std::string join(std::span<const std::string> parts, std::string_view separator);

}  // namespace ghostrank
