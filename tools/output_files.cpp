// See output_files.h.
#include "tools/output_files.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/error.h"

namespace ghostrank {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw Error("cannot write " + path + ": " + std::strerror(error) +
                  (path == "stdout" ? "" : "; choose another file"),
              ErrorKind::environment);
}

// Renaming would replace a device or a pipe: these are written in place.
bool is_in_place(const std::string& path) {
  struct stat existing {};
  return stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
}

std::string unfinished_name(const std::string& path) { return path + ".unfinished"; }

void check_writable(const std::string& path) {
  if (is_in_place(path)) {
    if (std::filesystem::is_directory(path)) cannot_write(path, EISDIR);
    if (access(path.c_str(), W_OK) != 0) cannot_write(path, errno);
    return;
  }
  std::FILE* file = std::fopen(unfinished_name(path).c_str(), "ab");
  if (file == nullptr) cannot_write(path, errno);
  std::fclose(file);
  std::remove(unfinished_name(path).c_str());
}

// Devices may be named twice: nothing is replaced there.
bool is_same_file(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return a == b;
  const auto plain = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  return plain(a) == plain(b) && !is_in_place(a);
}

}  // namespace

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
    check_writable(output->path);
    any_file = true;
  }
  if (any_file) std::signal(SIGPIPE, SIG_IGN);
}

void write_whole(const std::string& path, const std::string& text) {
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      cannot_write("stdout", errno);
    }
    return;
  }
  const bool in_place = is_in_place(path);
  const std::string unfinished = in_place ? path : unfinished_name(path);
  std::FILE* out = std::fopen(unfinished.c_str(), "wb");
  if (out == nullptr) cannot_write(path, errno);
  bool done = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  done = std::fclose(out) == 0 && done;
  if (done && !in_place) done = std::rename(unfinished.c_str(), path.c_str()) == 0;
  if (done) return;
  const int error = errno;
  if (!in_place) std::remove(unfinished.c_str());
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
