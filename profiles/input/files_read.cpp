#include "profiles/input/files_read.h"

#include <algorithm>
#include <filesystem>

namespace ghostrank {
namespace {

std::vector<std::string>& files() {
  static std::vector<std::string> all;
  return all;
}

}  // namespace

const std::vector<std::string>& files_read() { return files(); }

void note_read(const std::string& path) {
  if (std::find(files().begin(), files().end(), path) == files().end()) files().push_back(path);
}

bool was_read(const std::string& path) {
  return std::any_of(files().begin(), files().end(), [&](const std::string& file) {
    std::error_code absent;
    return std::filesystem::is_regular_file(path, absent) &&
           std::filesystem::equivalent(path, file, absent);
  });
}

}  // namespace ghostrank
