#include "profiles/load/compared_job.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ghostrank {
namespace {

using ConfigTree = nlohmann::ordered_json;

constexpr std::string_view kPlayedFiles[] = {"program", "trace"};  // their values are paths

bool is_played_file(const std::string& path) {
  return std::find(std::begin(kPlayedFiles), std::end(kPlayedFiles), path) !=
         std::end(kPlayedFiles);
}

ConfigTree config_tree(const LoadedJob& job) {
  return ConfigTree::parse(job.config_json, nullptr, false);
}

}  // namespace

std::string config_without_paths(const LoadedJob& job) {
  ConfigTree tree = config_tree(job);
  if (!tree.is_object()) return job.config_json;
  for (const std::string_view file : kPlayedFiles) tree.erase(std::string(file));
  return tree.dump();
}

std::vector<ComparedKey> compared_keys(const LoadedJob& job) {
  const ConfigTree tree = config_tree(job);
  std::vector<ComparedKey> keys;
  for (const ConfigEntry& entry : job.entries) {
    if (is_played_file(entry.path)) continue;
    std::string pointer = "/" + entry.path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const ConfigTree::json_pointer at(pointer);
    keys.push_back({entry.path, entry.value, tree.contains(at) ? tree.at(at).dump() : entry.value});
  }
  return keys;
}

}  // namespace ghostrank
