#include "profiles/input/keys.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "profiles/input/quantity.h"
#include "profiles/input/value_at.h"

namespace ghostrank {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

std::string_view last_part(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string_view group_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

const Key* find_key(std::span<const Key> table, std::string_view path) {
  const auto at =
      std::find_if(table.begin(), table.end(), [&](const Key& key) { return key.path == path; });
  return at == table.end() ? nullptr : &*at;
}

bool is_group(std::span<const Key> table, std::string_view path) {
  return std::any_of(table.begin(), table.end(), [&](const Key& key) {
    return key.path.size() > path.size() && key.path.starts_with(path) &&
           key.path[path.size()] == '.';
  });
}

// "a.b.c" -> "a: {b: {c: ...}}"
std::string nested(std::string_view path) {
  std::string text = "...", part;
  for (;; path = group_of(path)) {
    part = last_part(path);
    text = text == "..." ? part + ": ..." : part + ": {" + text + "}";
    if (part.size() == path.size()) return text;
  }
}

// Every key of the tree must be in the table, and groups must be mappings.
void refuse_unknown(const YamlValue& map, const std::string& prefix, std::span<const Key> table) {
  for (const YamlValue& child : map.children) {
    const std::string path = prefix.empty() ? child.key : prefix + "." + child.key;
    if (child.key.find('.') != std::string::npos)
      fail(child.key_mark, "unknown key " + quote(child.key) +
                               "; keys of a file have no dots: write " + nested(child.key));
    if (find_key(table, path)) continue;
    if (!is_group(table, path))
      fail(child.key_mark, "unknown key " + quote(path) + suggestion(path, table));
    if (child.kind == YamlValue::Kind::null) continue;
    if (!child.is_map())
      fail(child.mark, path + " is " + description(child) + "; write a mapping of its keys");
    refuse_unknown(child, path, table);
  }
}

std::string range_text(const Key& key) {
  if (key.min == key.max) return "";
  return " from " + number_text(key.min) + " to " + number_text(key.max);
}

// The expected form of the key's value, for messages.
std::string expected(const Key& key) {
  switch (key.type) {
    case KeyType::integer:
      return "write an integer" + range_text(key);
    case KeyType::number:
      return "write a number" + range_text(key);
    case KeyType::boolean:
      return "write true or false";
    case KeyType::string:
      return "write a text";
    case KeyType::choice: {
      std::string text = "allowed: " + join(words(key.allowed), ", ");
      if (!key.later.empty()) text += " (not available yet: " + join(words(key.later), ", ") + ")";
      return text;
    }
    case KeyType::auto_number:
      return "write auto or a number" + range_text(key);
    case KeyType::auto_integer:
      return "write auto or an integer" + range_text(key);
    case KeyType::rate:
      return "write a rate such as 400Gbps, or unlimited";
    case KeyType::size:
      return "write a size such as 512KiB or 4M (powers of 1024)";
    case KeyType::integers:
      return "write a list of integers" + range_text(key);
    case KeyType::profile:
      return "write a name, a path or a mapping";
    case KeyType::any:
      break;
  }
  return "see the reference";
}

[[noreturn]] void refuse(const Key& key, const Mark& mark, const std::string& found) {
  fail(mark, std::string(key.path) + " is " + found + "; " + expected(key));
}

void check_range(const Key& key, const YamlValue& value, double number) {
  if (key.min != key.max && (number < key.min || number > key.max))
    refuse(key, value.mark, description(value));
}

void refuse_later(const Key& key, const YamlValue& value) {
  if (!is_among(key.later, value.text)) return;
  const std::string instead =
      key.allowed.empty() ? "another one" : join(words(key.allowed), " or ");
  fail(value.mark,
       std::string(key.path) + ": " + value.text + " is not available yet; use " + instead);
}

void read_choice(const Key& key, const YamlValue& value, Setting& out) {
  if (!is_among(key.allowed, value.text)) refuse(key, value.mark, description(value));
  out.text = value.text;
}

void read_integers(const Key& key, const YamlValue& value, Setting& out) {
  if (!value.is_list()) refuse(key, value.mark, description(value));
  std::vector<std::string> numbers;
  for (const YamlValue& item : value.children) {
    const auto number = item.is_scalar() ? parse_integer(item.text) : std::nullopt;
    if (!number) refuse(key, item.mark, "a list with " + description(item));
    check_range(key, item, static_cast<double>(*number));
    numbers.push_back(std::to_string(*number));
  }
  out.text += '[' + join(numbers, ", ") + ']';
}

// Single values that become numbers. `accept` refuses malformed ones and checks the range.
void read_numeric(const Key& key, const YamlValue& value, Setting& out) {
  const auto accept = [&](const auto& parsed) {
    if (!parsed) refuse(key, value.mark, description(value));
    check_range(key, value, static_cast<double>(*parsed));
    out.number = static_cast<double>(*parsed);
  };
  const bool may_be_auto = key.type == KeyType::auto_number || key.type == KeyType::auto_integer;
  if (may_be_auto && value.text == "auto") {
    out.text = value.text;
    return;
  }
  switch (key.type) {
    case KeyType::integer:
    case KeyType::auto_integer: {
      const auto parsed = parse_integer(value.text);
      accept(parsed);
      out.text = std::to_string(*parsed);
      return;
    }
    case KeyType::boolean:
      accept(parse_boolean(value.text));
      out.text = value.text;
      return;
    case KeyType::rate:
      accept(parse_rate(value.text));
      out.text = rate_text(out.number);
      return;
    case KeyType::size:
      accept(parse_size(value.text));
      out.text = size_text(static_cast<std::uint64_t>(out.number));
      return;
    default:
      accept(parse_number(value.text));
      out.text = number_text(out.number);
      return;
  }
}

void read_value(const Key& key, const YamlValue& value, Setting& out) {
  if (key.type == KeyType::integers) return read_integers(key, value, out);
  if (key.type == KeyType::any) {
    out.text = value.is_scalar()        ? value.text
               : value.children.empty() ? std::string(key.standard)
                                        : "…";
    return;
  }
  if (key.type == KeyType::profile && (value.is_map() || value.is_scalar())) {
    out.text = value.is_map() ? "{…}" : value.text;
    return;
  }
  if (key.type == KeyType::string && value.kind == YamlValue::Kind::null) return;
  if (!value.is_scalar()) refuse(key, value.mark, description(value));
  refuse_later(key, value);
  if (key.type == KeyType::string)
    out.text = value.text;
  else if (key.type == KeyType::choice)
    read_choice(key, value, out);
  else
    read_numeric(key, value, out);
}

Setting default_of(const Key& key, const YamlValue& root, std::string_view what) {
  Setting out;
  out.key = &key;
  if (key.standard == kRequired)
    fail(root.mark, std::string(what) + " has no " + std::string(key.path) +
                        "; add it: " + std::string(key.doc));
  if (key.standard == kAbsent) return out;
  if (key.type == KeyType::any || key.type == KeyType::profile || key.type == KeyType::integers) {
    out.text = key.standard;
    return out;
  }
  YamlValue value;
  value.kind = YamlValue::Kind::scalar;
  value.text = key.standard;
  read_value(key, value, out);
  return out;
}

Setting setting_of(const Key& key, const YamlValue& root, std::string_view what) {
  const YamlValue* value = value_at(root, key.path);
  if (!value) return default_of(key, root, what);
  Setting out;
  out.key = &key;
  out.given = true;
  out.mark = value->mark;
  out.raw = value;
  if (!key.available) {
    // Report availability before any complaint about the value's form.
    Setting standard = default_of(key, root, what);
    const bool same = value->is_scalar() ? value->text == key.standard
                                         : value->children.empty() && key.type == KeyType::any &&
                                               key.standard != kAbsent;
    if (!same)
      fail(value->mark,
           std::string(key.path) + " is not available yet" +
               (key.later.empty() ? "" : ": " + std::string(key.later)) + "; " +
               (standard.text.empty() ? "remove it" : "remove it or use " + standard.text));
  }
  read_value(key, *value, out);
  return out;
}

// What other frameworks call a key: tensor, tensor_parallel_size, tensor_model_parallel_size: tp.
// Empty: none that is known.
std::string_view own_word(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"tensor", "tp"}, {"pipeline", "pp"}, {"data", "dp"}, {"context", "cp"}, {"expert", "ep"}};
  for (const auto& [word, key] : kWords) {
    if (!name.starts_with(word)) continue;
    const std::string_view rest = name.substr(word.size());
    if (rest.empty() || rest == "_parallel" || rest == "_parallel_size" ||
        rest == "_model_parallel_size")
      return key;
  }
  return {};
}

}  // namespace

Settings::Settings(const YamlValue& root, std::span<const Key> table, std::string_view what) {
  if (!root.is_map())
    fail(root.mark, (what.starts_with("e") ? "an " : "a ") + std::string(what) +
                        " is a mapping of keys; found " + description(root));
  refuse_unknown(root, "", table);
  settings_.reserve(table.size());
  for (const Key& key : table) settings_.push_back(setting_of(key, root, what));
}

const Setting& Settings::at(std::string_view path) const {
  const auto at = std::find_if(settings_.begin(), settings_.end(),
                               [&](const Setting& setting) { return setting.key->path == path; });
  return settings_.at(at - settings_.begin());
}

Picoseconds Settings::micros(std::string_view path) const {
  return std::llround(number(path) * static_cast<double>(kPicosPerMicro));
}

std::vector<std::int64_t> Settings::integers(std::string_view path) const {
  std::vector<std::int64_t> out;
  if (const YamlValue* raw = at(path).raw)
    for (const YamlValue& item : raw->children) out.push_back(*parse_integer(item.text));
  return out;
}

std::string nearest(std::string_view name, std::span<const std::string> names,
                    std::string_view prefix) {
  constexpr std::size_t kLongest = 200;
  if (name.size() > kLongest) return "";
  constexpr std::size_t kShortest = 3, kMost = 3;
  std::vector<std::string> longer;  // names that begin so
  for (const std::string& candidate : names) {
    if (name.size() >= kShortest && candidate.starts_with(name))
      longer.push_back(std::string(prefix) + candidate);
  }
  if (!longer.empty() && longer.size() <= kMost) return join(longer, " or ");
  std::string best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : names) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    best = std::string(prefix) + candidate;
  }
  return best;
}

std::string suggestion(std::string_view path, std::span<const Key> table) {
  const std::string_view name = last_part(path), group = group_of(path);
  const std::string_view meant = own_word(name);
  std::vector<std::string> here, all;  // names in the same group; every path, and every group
  const auto add = [](std::vector<std::string>& names, std::string_view one) {
    if (std::find(names.begin(), names.end(), one) == names.end()) names.emplace_back(one);
  };
  for (const Key& key : table) {
    // The likeliest slip is the right name in the wrong group.
    const bool is_meant = last_part(key.path) == meant && group_of(key.path).starts_with(group);
    if ((last_part(key.path) == name || is_meant) && key.available)
      return "; did you mean " + std::string(key.path) + "?";
    for (auto inner = key.path; !inner.empty(); inner = group_of(inner)) {
      add(all, inner);
      if (group_of(inner) == group) add(here, last_part(inner));
    }
  }
  const std::string prefix = group.empty() ? "" : std::string(group) + ".";
  if (const std::string best = nearest(name, here, prefix); !best.empty())
    return "; did you mean " + best + "?";
  if (!here.empty()) return "; known here: " + prefix + join(here, ", " + prefix);
  const std::string best = nearest(path, all);  // the group is none
  return best.empty() ? "; remove it" : "; did you mean " + best + "?";
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

bool is_among(std::string_view list, std::string_view word) {
  const auto all = words(list);
  return std::find(all.begin(), all.end(), word) != all.end();
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

}  // namespace ghostrank
