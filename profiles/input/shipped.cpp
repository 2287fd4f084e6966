#include "profiles/input/shipped.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace ghostrank {

namespace fs = std::filesystem;

std::vector<std::string> profile_directories() {
  std::vector<std::string> directories;
  if (const char* list = std::getenv("GHOSTRANK_PROFILES")) {
    std::istringstream stream(list);
    for (std::string one; std::getline(stream, one, ':');)
      if (!one.empty()) directories.push_back(one);
  }
  // An installed program prefers its own profiles to those of its source tree.
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path own = program.parent_path().parent_path() / "share/ghostrank/profiles";
  if (!unknown && fs::is_directory(own, unknown)) directories.push_back(own.string());
  directories.emplace_back(GHOSTRANK_SOURCE_PROFILES);
  directories.emplace_back(GHOSTRANK_INSTALLED_PROFILES);
  return directories;
}

std::vector<std::string> shipped_names(std::string_view folder, std::string_view extension) {
  std::vector<std::string> names;
  for (const std::string& directory : profile_directories()) {
    std::error_code error;
    for (fs::directory_iterator at(fs::path(directory) / folder, error), end; !error && at != end;
         at.increment(error))
      if (at->path().extension() == extension) names.push_back(at->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string shipped_file(const std::string& name, std::string_view folder,
                         std::string_view extension) {
  for (const std::string& directory : profile_directories()) {
    const fs::path path = fs::path(directory) / folder / (name + std::string(extension));
    if (std::error_code ignored; fs::is_regular_file(path, ignored)) return path.string();
  }
  return "";
}

}  // namespace ghostrank
