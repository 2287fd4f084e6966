#include "tools/switching/targets/program_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "profiles/error.h"
#include "profiles/input/content_hash.h"
#include "tools/report/files/output_files.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

// Where the user's caches are; empty: nowhere. The XDG rules ignore a path that is relative.
fs::path cache_folder() {
  const char* named = std::getenv("XDG_CACHE_HOME");
  if (named != nullptr && fs::path(named).is_absolute()) return named;
  const char* home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute()) return fs::path(home) / ".cache";
  return {};
}

// The name of a kept program; empty: there is no place for it.
fs::path file_of(const std::string& made_of) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  return folder / "ghostrank" / "p4" / content_hash_text(made_of);
}

}  // namespace

bool take_kept_program(const std::string& made_of, const std::string& result) {
  const fs::path file = file_of(made_of);
  std::error_code failed;
  // An empty one was cut off when the machine went down.
  if (file.empty() || !fs::is_regular_file(file, failed) || fs::file_size(file, failed) == 0)
    return false;
  return fs::copy_file(file, result, fs::copy_options::overwrite_existing, failed);
}

void keep_program(const std::string& made_of, const std::string& program) {
  const fs::path file = file_of(made_of);
  if (file.empty()) return;
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (failed) return;
  std::ifstream in(program, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(in), {});
  try {
    write_whole(file.string(), content);
  } catch (const Error&) {  // the next run compiles it again
  }
}

}  // namespace ghostrank
