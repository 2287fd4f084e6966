#include "profiles/load/named_files.h"

#include <algorithm>
#include <filesystem>
#include <fnmatch.h>
#include <fstream>
#include <functional>
#include <string_view>
#include <utility>

#include "profiles/algorithms/algorithms.h"
#include "profiles/input/content_hash.h"
#include "profiles/input/files_read.h"
#include "profiles/input/named_text.h"
#include "profiles/load/json.h"
#include "profiles/load/load.h"
#include "profiles/load/locate.h"
#include "profiles/load/program_file.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

std::string hash_of_file(const std::string& path) {
  std::uint64_t hash = content_hash("");
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
    hash = content_hash({block.data(), static_cast<std::size_t>(file.gcount())}, hash);
  return hash_text(hash);
}

// Of the files that have been read from a folder, or by a pattern. Empty: it is neither, as a pipe.
std::string hash_of_many(const fs::path& name) {
  std::error_code ignored;
  const bool folder = fs::is_directory(name, ignored);
  const fs::path in = folder ? name : name.parent_path();
  const std::string pattern = folder ? "*" : name.filename().string();
  if (pattern.find('*') == std::string::npos) return "";
  std::string all;
  for (const fs::path file : files_read())
    if (in / file.filename() == file && fnmatch(pattern.c_str(), file.filename().c_str(), 0) == 0)
      all += file.filename().string() + " " + hash_of_file(file) + "\n";
  return content_hash_text(all);
}

class Names {
 public:
  explicit Names(std::string near) : near_(std::move(near)) {}

  NamedFiles of(const Json& job, const JobSpec& spec) {
    add_job(job, spec);
    return std::move(files_);
  }

 private:
  void add_job(const Json& job, const JobSpec& spec) {
    if (const auto jobs = job.find("jobs"); jobs != job.end())
      for (std::size_t j = 0; j < jobs->size() && j < spec.jobs.size(); ++j)
        add_job((*jobs)[j].at("file"), *spec.jobs[j].job);
    if (const auto program = job.find("program"); program != job.end() && program->is_string())
      files_[*program] = {*program, content_hash_text(program_profile(*spec.program, {}))};
    if (const auto trace = job.find("trace"); trace != job.end()) add_all(*trace);
    if (const auto collectives = job.find("collectives"); collectives != job.end())
      add_algorithms(*collectives, "");
    if (const auto at = job.find("switch"); at != job.end() && at->contains("program"))
      add((*at)["program"]);
  }

  // A path, a list of paths, or {files: …, format: …, ranks: …}.
  void add_all(const Json& value) {
    if (value.is_object()) {
      if (const auto files = value.find("files"); files != value.end()) add_all(*files);
    } else if (value.is_array()) {
      for (const Json& one : value) add(one);
    } else {
      add(value);
    }
  }

  void add_algorithms(const Json& value, const std::string& key) {
    if (value.is_object())
      for (const auto& [name, child] : value.items()) add_algorithms(child, name);
    else if (key == "plugins")
      add_all(value);
    else if (value.is_string() && Algorithms::names_file(value.get_ref<const std::string&>()))
      add(value);
  }

  void add(const Json& value) {
    if (!value.is_string()) return;
    const std::string& name = value.get_ref<const std::string&>();
    if (name.empty() || files_.contains(name)) return;
    const std::string path = file_named(name, near_);
    std::string hash = path.empty() ? hash_of_many(name) : hash_of_file(path);
    if (hash.empty()) return;
    files_[name] = {fs::absolute(path.empty() ? name : path).lexically_normal(), std::move(hash)};
  }

  std::string near_;
  NamedFiles files_;
};

}  // namespace

NamedFiles named_files(const LoadedJob& job) {
  return Names(folder_of(job.spec.file)).of(Json::parse(job.config_json), job.spec);
}

std::string with_files(const std::string& config_json, const NamedFiles& files) {
  if (files.empty()) return config_json;
  Json config = Json::parse(config_json);
  for (const auto& [name, file] : files)
    config["files"][name] = {{"path", file.path}, {"hash", file.hash}};
  return config.dump(2, ' ', false, Json::error_handler_t::replace);
}

NamedFiles files_in(const std::string& config_json) {
  NamedFiles files;
  const Json config = Json::parse(config_json.empty() ? "{}" : config_json);
  if (const auto all = config.find("files"); all != config.end())
    for (const auto& [name, file] : all->items()) files[name] = {file.at("path"), file.at("hash")};
  return files;
}

std::string with_contents(const std::string& json, const NamedFiles& files) {
  std::map<std::string, std::string, std::less<>> texts;
  for (const auto& [name, file] : files)
    texts[Json(name).dump(-1, ' ', false, Json::error_handler_t::replace)] = Json(file.hash).dump();
  if (texts.empty()) return json;
  std::string out;
  for (std::size_t at = 0, end = 0; at < json.size(); at = end) {
    end = std::min(json.find('"', at), json.size());
    out.append(json, at, end - at);
    if (end == json.size()) break;
    at = end++;  // a string begins
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, json.size());
    const std::string_view text = std::string_view(json).substr(at, end - at);
    const auto named = texts.find(text);
    out += named == texts.end() ? text : std::string_view(named->second);
  }
  return out;
}

NamedFiles files_played(const YamlValue& result) {
  NamedFiles played;
  if (const YamlValue* files = result.find("files"))
    for (const YamlValue& file : files->children)
      if (const YamlValue* path = file.find("path"), *hash = file.find("hash"); path && hash)
        played[file.key] = {path->text, hash->text};
  return played;
}

void find_files(YamlValue& config, const NamedFiles& played, const std::string& near) {
  for (YamlValue& child : config.children) find_files(child, played, near);
  if (!config.is_scalar()) return;
  const auto named = played.find(config.text);
  if (named != played.end() && file_named(config.text, near).empty())
    config.text = named->second.path, config.quoted = true;
}

std::vector<std::string> notes_of_changed(const NamedFiles& played, const LoadedJob& job) {
  std::vector<std::string> notes;
  if (played.empty()) return notes;
  std::map<std::string, std::string> then;  // hashes, by name and by path
  for (const auto& [name, file] : played) then[name] = then[file.path] = file.hash;
  for (const auto& [name, file] : named_files(job))
    if (const auto known = then.find(name); known != then.end() && known->second != file.hash)
      notes.push_back(name + ": its content is not that of the result's run: another job, maybe");
  return notes;
}

}  // namespace ghostrank
