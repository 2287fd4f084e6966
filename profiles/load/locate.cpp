#include "profiles/load/locate.h"

#include <algorithm>
#include <filesystem>

#include "profiles/device/kernels/tables.h"
#include "profiles/error.h"
#include "profiles/input/idle.h"
#include "profiles/input/input_file.h"
#include "profiles/input/keys.h"
#include "profiles/input/named_text.h"
#include "profiles/input/shipped.h"
#include "profiles/input/value_at.h"
#include "profiles/job/job.h"
#include "profiles/load/job_schema.h"
#include "profiles/model/model.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxBases = 8;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool looks_like_path(const std::string& text) {
  const auto ends = [&](std::string_view tail) { return text.ends_with(tail); };
  return text.find('/') != std::string::npos || ends(".yaml") || ends(".yml") || ends(".json") ||
         ends(".csv");
}

std::string find_file(const YamlValue& given, const ProfileKind& kind, const std::string& near) {
  const std::string& name = given.text;
  if (looks_like_path(name)) {
    if (std::string path = file_named(name, near); !path.empty()) return path;
    fail(given.mark,
         "there is no " + std::string(kind.name) + " file " + quote(name) + "; check the path");
  }
  // A profile may name its neighbour, and a job may bring a folder of profiles.
  const fs::path beside = fs::path(near) / (name + ".yaml");
  const fs::path below = fs::path(near) / kind.folder / (name + ".yaml");
  if (fs::path(near).filename() == kind.folder && is_file(beside)) return beside.string();
  if (is_file(below)) return below.string();
  if (std::string path = shipped_file(name, kind.folder); !path.empty()) return path;
  const auto names = shipped_names(kind.folder);
  const std::string near_name = nearest(name, names);
  fail(given.mark, "there is no " + std::string(kind.name) + " called " + quote(name) +
                       (near_name.empty() ? "; known: " + join(names, ", ")
                                          : "; did you mean " + near_name + "?"));
}

void remove_key(YamlValue& map, std::string_view key) {
  std::erase_if(map.children, [&](const YamlValue& child) { return child.key == key; });
}

void check_schema(const YamlValue& map, const ProfileKind& kind) {
  const YamlValue* schema = map.find("schema");
  if (schema && schema->text != kind.schema)
    fail(schema->mark, "the schema of a " + std::string(kind.name) + " is " +
                           std::string(kind.schema) + "; found " + description(*schema));
}

// Replaces the paths of a device's tables by the tables, so that the profile is complete, in a
// result, too. Errors about a row then name the CSV file.
void take_kernel_tables(YamlValue& device, const std::string& near) {
  YamlValue* kernels = device.find("kernels");
  if (!kernels) return;
  for (const char* key : kKernelTables) {
    YamlValue* table = kernels->find(key);
    if (!table || !table->is_scalar() || !names_kernel_table(table->text)) continue;
    const std::string path = file_named(table->text, near);
    if (path.empty())
      fail(table->mark, "there is no table of kernels " + quote(table->text) + "; check the path");
    table->text = read_input(path) + "\n";
    table->quoted = true;
    table->mark = {std::make_shared<const Source>(Source{path, path, true}), 0, 1};
  }
}

// What a device says of its calibration holds for its own numbers, not for those put in their
// place.
void drop_calibration(YamlValue& device, const YamlValue& own) {
  const YamlValue* calibration = device.find("calibration");
  const auto is_calibrated = [&](const YamlValue& key) {
    if (key.key == "efficiency") return calibration && calibration->text == "fitted_efficiency";
    return key.key == "peak_tflops" || key.key == "memory_GBps" || key.key == "multiprocessors" ||
           key.key == "kernels" || key.key == "calibration";
  };
  if (std::none_of(own.children.begin(), own.children.end(), is_calibrated)) return;
  for (const char* key : {"calibration", "calibrated_type", "step_time_error",
                          "step_time_error_others", "kernel_error"})
    remove_key(device, key);
}

void remove_path(YamlValue& map, std::string_view path) {
  const auto dot = path.find('.');
  if (dot == path.npos) return remove_key(map, path);
  if (YamlValue* group = map.find(path.substr(0, dot))) remove_path(*group, path.substr(dot + 1));
}

// A base's keys that mean nothing beside those put in place of others are not a mistake: what its
// experts are, where there are none now. The model's builder refuses all others.
void drop_idle(YamlValue& model, const YamlValue& own) {
  const YamlValue* kind = model.find("kind");
  if (!kind) return;
  for (const Key& key : model_keys(kind->text))
    for (const Beside& one : key.beside) {
      const YamlValue* other = one.key.empty() ? nullptr : value_at(own, one.key);
      if (other && !holds(one, other->text) && !value_at(own, key.path))
        remove_path(model, key.path);
    }
}

YamlValue resolve(const YamlValue& given, const ProfileKind& kind, const std::string& near,
                  int bases);

YamlValue resolve_file(const YamlValue& given, const ProfileKind& kind, const std::string& near,
                       int bases) {
  const std::string path = find_file(given, kind, near);
  const std::string stem = fs::path(path).stem().string();
  if (kind.name == kModelProfile.name && path.ends_with(".csv"))
    return read_layer_csv(read_input(path), path, stem);
  YamlValue file = parse_yaml_file(path);
  if (!file.is_map())
    fail(file.mark,
         "a " + std::string(kind.name) + " is a mapping of keys; found " + description(file));
  YamlValue out = resolve(file, kind, folder_of(path), bases + 1);
  if (!file.find("name")) {
    remove_key(out, "name");
    YamlValue name;
    name.kind = YamlValue::Kind::scalar;
    name.quoted = true;
    name.text = stem;
    name.key = "name";
    name.mark = name.key_mark = file.mark;
    out.children.push_back(std::move(name));
  }
  return out;
}

YamlValue resolve(const YamlValue& given, const ProfileKind& kind, const std::string& near,
                  int bases) {
  if (bases > kMaxBases)
    fail(given.mark, "profiles are based on each other more than " + std::to_string(kMaxBases) +
                         " deep; break the circle");
  if (given.is_scalar()) return resolve_file(given, kind, near, bases);
  if (!given.is_map())
    fail(given.mark, std::string(kind.name) + " is " + description(given) +
                         "; write a name, a path or a mapping");
  check_schema(given, kind);
  YamlValue own = given;
  remove_key(own, "schema");
  remove_key(own, "base");
  if (kind.name == kDeviceProfile.name) take_kernel_tables(own, near);
  const YamlValue* base = given.find("base");
  if (!base) return own;
  if (!base->is_scalar())
    fail(base->mark, "base is " + description(*base) + "; write the name or path of a " +
                         std::string(kind.name));
  YamlValue out = resolve_file(*base, kind, near, bases + 1);
  if (kind.name == kDeviceProfile.name) drop_calibration(out, own);
  merge_into(out, own);
  if (kind.name == kModelProfile.name) drop_idle(out, own);
  out.mark = given.mark;
  return out;
}

}  // namespace

YamlValue resolve_profile(const YamlValue& given, const ProfileKind& kind,
                          const std::string& near) {
  return resolve(given, kind, near, 0);
}

void merge_into(YamlValue& under, const YamlValue& over) {
  for (const YamlValue& child : over.children) {
    YamlValue* present = under.find(child.key);
    if (!present)
      under.children.push_back(child);
    else if (present->is_map() && child.is_map())
      merge_into(*present, child);
    else
      *present = child;
  }
}

std::string find_job_file(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  if (!looks_like_path(path))
    if (std::string shipped = shipped_file(path, "jobs"); !shipped.empty()) return shipped;
  const auto names = shipped_names("jobs");
  throw Error(path + ": there is no such file; give the path of a job file or one of: " +
              join(names, ", "));
}

bool names_job(const std::string& text) {
  if (text == "-") return true;
  if (!looks_like_path(text))
    return shipped_file(text, kModelProfile.folder).empty() && !shipped_file(text, "jobs").empty();
  if (text.ends_with(".csv") || !is_file(text)) return false;
  const YamlValue root = parse_yaml_file(text);
  if (const YamlValue* schema = root.find("schema"))
    return schema->text == kJobSchema || schema->text == kResultSchema;
  return root.find("model") || root.find("trace") || root.find("program") || root.find("jobs");
}

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

}  // namespace ghostrank
