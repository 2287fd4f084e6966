#include "profiles/load/config.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/input/value_at.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/json.h"
#include "profiles/load/load.h"
#include "profiles/load/locate.h"

namespace ghostrank {
namespace {

bool is_profile(std::string_view top) { return top == "model" || top == "device"; }

// Keys whose value may be a name instead of a mapping with a base.
bool may_be_name(std::string_view top) { return is_profile(top) || top == "cluster"; }

void refuse_unknown_path(const std::string& path, const Mark& mark) {
  const std::string top = path.substr(0, path.find('.'));
  if (is_profile(top)) return;
  for (const Key& key : job_keys())
    if (key.path == path || key.path.starts_with(path + ".") ||
        (key.type == KeyType::any && path.starts_with(std::string(key.path) + ".")))
      return;
  fail(mark, "unknown key " + quote(path) + suggestion(path, job_keys()));
}

YamlValue& child_map(YamlValue& parent, const std::string& key, const std::string& path,
                     const Mark& mark) {
  YamlValue* child = parent.find(key);
  if (!child) {
    parent.children.emplace_back();
    child = &parent.children.back();
    child->key = key;
    child->mark = child->key_mark = mark;
  }
  if (child->is_scalar() && may_be_name(path)) *child = with_base(*child);
  if (child->kind == YamlValue::Kind::null) child->kind = YamlValue::Kind::map;
  if (!child->is_map()) fail(mark, path + " is " + description(*child) + "; it has no keys to set");
  return *child;
}

void put(YamlValue& parent, const std::string& path, YamlValue value) {
  YamlValue* present = parent.find(value.key);
  if (!present) {
    parent.children.push_back(std::move(value));
    return;
  }
  if (value.is_map() && !is_profile(path)) {
    if (present->is_scalar() && may_be_name(path)) *present = with_base(*present);
    if (present->is_map()) return merge_into(*present, value);
  }
  *present = std::move(value);
}

// A scalar as JSON that reads back as the same text.
Json scalar_json(const YamlValue& value) {
  if (value.quoted) return value.text;
  if (const auto flag = parse_boolean(value.text)) return *flag;
  if (const auto whole = parse_integer(value.text); whole && std::to_string(*whole) == value.text)
    return *whole;
  if (const auto number = parse_number(value.text)) {
    Json json = *number;
    if (json.dump() == value.text) return json;
  }
  return value.text;
}

Json value_json(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return nullptr;
    case YamlValue::Kind::scalar:
      return scalar_json(value);
    case YamlValue::Kind::list: {
      Json json = Json::array();
      for (const YamlValue& child : value.children) json.push_back(value_json(child));
      return json;
    }
    case YamlValue::Kind::map:
      break;
  }
  Json json = Json::object();
  for (const YamlValue& child : value.children) json[child.key] = value_json(child);
  return json;
}

Json form_json(const Setting& setting) {
  if (setting.raw && setting.raw->kind != YamlValue::Kind::null) return value_json(*setting.raw);
  const bool empty = setting.text == "[]" || setting.text == "{}";
  return empty ? Json::parse(setting.text) : Json(setting.text);
}

Json setting_json(const Setting& setting) {
  switch (setting.key->type) {
    case KeyType::any:
      return form_json(setting);
    case KeyType::integers:
      return Json::parse(setting.text);
    case KeyType::integer:
      return static_cast<std::int64_t>(setting.number);
    case KeyType::boolean:
      return setting.number != 0;
    case KeyType::number:
      return setting.number;
    case KeyType::auto_number:
      return setting.number == 0 ? Json(setting.text) : Json(setting.number);
    case KeyType::auto_integer:
      return setting.number == 0 ? Json(setting.text)
                                 : Json(static_cast<std::int64_t>(setting.number));
    default:
      return setting.text;
  }
}

void put_json(Json& root, std::string_view path, Json value) {
  Json* at = &root;
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    at = &(*at)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  (*at)[std::string(path)] = std::move(value);
}

YamlValue tree_of(const std::vector<std::string>& overrides) {
  YamlValue root;
  root.kind = YamlValue::Kind::map;
  for (const std::string& text : overrides) apply_override(root, text);
  return root;
}

void each_value(const YamlValue& at, const std::string& path,
                const std::function<void(const std::string&, const YamlValue&)>& visit) {
  if (!at.is_map()) return visit(path, at);
  for (const YamlValue& child : at.children)
    each_value(child, path.empty() ? child.key : path + "." + child.key, visit);
}

}  // namespace

YamlValue with_base(const YamlValue& name) {
  YamlValue map;
  map.kind = YamlValue::Kind::map;
  map.key = name.key;
  map.key_mark = name.key_mark;
  map.mark = name.mark;
  YamlValue base = name;
  base.key = "base";
  map.children.push_back(std::move(base));
  return map;
}

void set_path(YamlValue& root, const std::string& path, YamlValue value) {
  const Mark mark = value.mark;
  refuse_unknown_path(path, mark);
  YamlValue* at = &root;
  std::size_t from = 0;
  for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', from)) {
    at = &child_map(*at, path.substr(from, dot - from), path.substr(0, dot), mark);
    from = dot + 1;
  }
  value.key = path.substr(from);
  value.key_mark = mark;
  put(*at, path, std::move(value));
}

std::string environment_name(std::string_view path) {
  std::string name = "GHOSTRANK_";
  for (const char c : path)
    name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

void apply_environment(YamlValue& root) {
  for (const Key& key : job_keys()) {
    const std::string name = environment_name(key.path);
    const char* text = std::getenv(name.c_str());
    if (!text) continue;
    const auto source = std::make_shared<Source>(Source{name, name, false});
    set_path(root, std::string(key.path), parse_yaml(text, source));
  }
}

std::vector<std::string> job_variables() {
  std::vector<std::string> variables;
  const auto add = [&](const std::string& name) {
    if (const char* text = std::getenv(name.c_str())) variables.push_back(name + "=" + text);
  };
  add("GHOSTRANK_PROFILES");
  for (const Key& key : job_keys()) add(environment_name(key.path));
  return variables;
}

void apply_override(YamlValue& root, const std::string& text) {
  const auto source = std::make_shared<Source>(Source{"-s " + quote(text), "-s", false});
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail({source, 1, 1}, "no value; write -s path=value, as in -s run.iterations=10");
  const std::string path = text.substr(0, equals);
  YamlValue value = parse_yaml(text.substr(equals + 1), source);
  const auto is_of_group = [&](const Key& key) { return key.path.starts_with(path + "."); };
  const auto of_group = std::find_if(job_keys().begin(), job_keys().end(), is_of_group);
  if (value.kind == YamlValue::Kind::null && of_group != job_keys().end())
    fail({source, 1, 1},
         "no value for its keys; write for example -s " + std::string(of_group->path) + "=VALUE");
  set_path(root, path, std::move(value));
}

bool gives(const std::vector<std::string>& overrides, std::string_view path) {
  const YamlValue root = tree_of(overrides);
  const YamlValue* at = value_at(root, path);
  return at && !at->is_map();
}

std::string undone(const std::vector<std::string>& earlier, const std::vector<std::string>& later) {
  YamlValue root = tree_of(earlier);
  std::vector<std::pair<std::string, std::shared_ptr<const Source>>> given;
  each_value(root, "", [&](const std::string& path, const YamlValue& value) {
    given.emplace_back(path, value.mark.source);
  });
  for (const std::string& text : later) apply_override(root, text);
  for (const auto& [path, source] : given) {
    const YamlValue* now = value_at(root, path);
    if (now && now->is_map()) now = now->find("base");  // a name of which keys were changed
    if (!now || now->mark.source != source) return path;
  }
  return {};
}

std::vector<ConfigEntry> make_entries(const Settings& settings) {
  std::vector<ConfigEntry> entries;
  for (const Setting& setting : settings.all()) {
    if (!setting.key->available) continue;
    const bool in_place = setting.raw && (setting.raw->is_map() || setting.raw->is_list());
    entries.push_back({std::string(setting.key->path),
                       in_place ? json_text(value_json(*setting.raw)) : setting.text,
                       setting.given ? origin(setting.mark) : "default"});
  }
  return entries;
}

std::string make_config_json(const Settings& settings,
                             const std::map<std::string, YamlValue>& resolved,
                             const std::set<std::string_view>& if_given) {
  Json root = Json::object();
  for (const Setting& setting : settings.all()) {
    const std::string path(setting.key->path);
    // All values are written out, so the base adds nothing.
    if (!setting.key->available || path == "cluster.base") continue;
    if (const auto at = resolved.find(path); at != resolved.end())
      put_json(root, path, value_json(at->second));
    else if (setting.key->type != KeyType::profile &&
             (setting.given || (setting.key->standard != kAbsent && !if_given.contains(path))))
      put_json(root, path, setting_json(setting));
  }
  return json_text(root, 2);
}

}  // namespace ghostrank
