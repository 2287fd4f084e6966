#include "tests/profiles/support.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "profiles/error.h"
#include "profiles/input/yaml.h"
#include "profiles/load/load.h"
#include "profiles/load/locate.h"
#include "profiles/planners/plan.h"

namespace ghostrank::test {

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "ghostrank-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  root_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

LoadedJob load_text(const std::string& text, const std::vector<std::string>& overrides) {
  const Folder folder;
  return load_job(folder.write("job.yaml", text), overrides);
}

std::string load_error(const std::string& text, const std::vector<std::string>& overrides) {
  const Folder folder;
  const std::string path = folder.write("job.yaml", text);
  std::string error = error_of([&] { plan_workload(load_job(path, overrides).spec); });
  const std::string prefix = folder.path("");
  for (auto at = error.find(prefix); at != std::string::npos; at = error.find(prefix))
    error.erase(at, prefix.size());
  return error;
}

Model shipped_model(const std::string& name) { return model_from(name); }

Model model_from(const std::string& yaml) {
  const auto source = std::make_shared<Source>(Source{"model", "model", true});
  return make_model(resolve_profile(parse_yaml(yaml, source), kModelProfile, ""));
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string data_folder() {
  const char* named = std::getenv("GHOSTRANK_TEST_DATA");
  return named ? named : GHOSTRANK_SOURCE_DIR "/../shared/data";
}

}  // namespace ghostrank::test
