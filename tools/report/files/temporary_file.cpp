#include "tools/report/files/temporary_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include "profiles/error.h"
#include "switch/ports/fd.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

// For mkstemp() and mkdtemp().
std::string pattern() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error)
    throw Error("there is no folder for temporary files: " + error.message() +
                    "; set TMPDIR to one that can be written",
                ErrorKind::environment);
  return (folder / "ghostrank-XXXXXX").string();
}

[[noreturn]] void cannot_make(const std::string& what, const std::string& pattern) {
  throw Error("no temporary " + what + " can be made in " +
                  fs::path(pattern).parent_path().string() + ": " + std::strerror(errno) +
                  "; set TMPDIR to a folder that can be written",
              ErrorKind::environment);
}

}  // namespace

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::FILE* out = std::fopen(path.c_str(), "we");
  bool done = out != nullptr;
  for (std::size_t i = 0; done && i < lines.size(); ++i) {
    done = std::fwrite(lines[i].data(), 1, lines[i].size(), out) == lines[i].size() &&
           std::fputc('\n', out) != EOF;
  }
  int why = errno;
  if (out != nullptr && std::fclose(out) != 0 && done) {  // fclose writes the rest
    done = false;
    why = errno;
  }
  if (!done)
    throw Error("the temporary file " + path + " cannot be written: " + std::strerror(why) +
                    "; make room there, or set TMPDIR to another folder",
                ErrorKind::environment);
}

TemporaryFile::TemporaryFile(const std::vector<std::string>& lines) : path_(pattern()) {
  if (!Fd(mkstemp(path_.data())).is_open()) cannot_make("file", path_);
  try {
    write_lines(path_, lines);
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

TemporaryFolder::TemporaryFolder() : path_(pattern()) {
  if (mkdtemp(path_.data()) == nullptr) cannot_make("folder", path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(const std::string& name) const {
  return (fs::path(path_) / name).string();
}

}  // namespace ghostrank
