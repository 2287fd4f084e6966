// See output_files.h.
#include "tools/report/files/output_files.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "emulator/common/log.h"
#include "profiles/error.h"
#include "profiles/input/files_read.h"
#include "switch/ports/fd.h"

namespace ghostrank {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw Error("cannot write " + path + ": " + std::strerror(error) +
                  (path == "stdout" ? "" : "; choose another file"),
              ErrorKind::environment);
}

// Resolves symbolic links, because the rename must replace the file behind a link, not the link. A
// link may name a file that is still to be written.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::error_code unknown;
  std::filesystem::path target = std::filesystem::canonical(path, unknown);
  if (!unknown) return target.string();
  target = path;
  for (int i = 0; i < kMostLinks && !std::filesystem::exists(target, unknown) &&
                  std::filesystem::is_symlink(target, unknown);
       ++i)
    target = target.parent_path() / std::filesystem::read_symlink(target, unknown);
  return target.string();
}

// Creates a file beside `path` under an unused name and returns the name. Returns "" and leaves
// errno set when it cannot.
std::string new_file_beside(const std::string& path) {
  constexpr int kMostTries = 1000;  // names that others or killed runs may have left
  for (int i = 1; i <= kMostTries; ++i) {
    std::string name = path + ".unfinished" + (i > 1 ? std::to_string(i) : "");
    if (Fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)).is_open())
      return name;
    if (errno != EEXIST) break;
  }
  return "";
}

void refuse_input(const std::string& path) {
  if (was_read(path))
    throw Error("cannot write " + path + ": it is an input of this command; choose another file");
}

// False for a device or a pipe: two flags may name the same one, because nothing replaces it.
bool is_same_file(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return a == b;
  const auto plain = [](const std::string& path) {
    const std::filesystem::path target = std::filesystem::absolute(target_of(path));
    std::error_code unknown;
    const std::filesystem::path resolved = std::filesystem::weakly_canonical(target, unknown);
    return unknown ? target.lexically_normal() : resolved;
  };
  return plain(a) == plain(b) && !is_in_place(a);
}

}  // namespace

// rename() would replace a device or a pipe.
bool is_in_place(const std::string& path) {
  struct stat existing {};
  return path == "-" || (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode));
}

void check_outputs(const std::vector<Output>& outputs) {
  bool any_file = false;
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    const auto twin = std::find_if(outputs.begin(), output, [&](const Output& other) {
      return !other.path.empty() && is_same_file(other.path, output->path);
    });
    if (twin != output) {
      throw Error(twin->flag + " and " + output->flag + " both write " +
                  (output->path == "-" ? "to stdout" : output->path) + "; give each its own file");
    }
    if (output->path == "-") continue;
    const Replacement possible(output->path);
    any_file = true;
  }
  if (any_file) std::signal(SIGPIPE, SIG_IGN);
}

Replacement::Replacement(const std::string& path) : path_(target_of(path)) {
  refuse_input(path);
  if (!is_in_place(path_)) {
    name_ = new_file_beside(path_);
    if (name_.empty()) cannot_write(path, errno);
  } else if (std::filesystem::is_directory(path_)) {
    cannot_write(path, EISDIR);
  } else if (access(path_.c_str(), W_OK) != 0) {
    cannot_write(path, errno);
  }
}

Replacement::~Replacement() {
  if (!name_.empty()) std::remove(name_.c_str());
}

void Replacement::keep() {
  if (!name_.empty() && std::rename(name_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
  name_.clear();
  log_info("written: ", path_);
}

void write_whole(const std::string& path, const std::string& text) {
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      cannot_write("stdout", errno);
    }
    return;
  }
  Replacement file(path);
  std::FILE* out = std::fopen(file.name().c_str(), "wb");
  if (out == nullptr) cannot_write(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  int error = errno;
  if (std::fclose(out) != 0 && written)
    error = errno;
  else if (written)
    return file.keep();
  cannot_write(path, error);
}

int write_each(const std::vector<std::function<void()>>& writes) {
  int status = 0;
  for (const std::function<void()>& write : writes) {
    try {
      write();
    } catch (const Error& error) {
      std::fprintf(stderr, "ghostrank: %s\n", error.what());
      status = error.exit_code();
    }
  }
  return status;
}

int write_each(const std::vector<TextFile>& files) {
  std::vector<std::function<void()>> writes;
  for (const TextFile& file : files) {
    if (!file.path.empty()) writes.emplace_back([&file] { write_whole(file.path, file.text()); });
  }
  return write_each(writes);
}

}  // namespace ghostrank
