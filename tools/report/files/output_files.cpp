// See output_files.h.
#include "tools/report/files/output_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulator/common/log.h"
#include "profiles/error.h"
#include "profiles/input/files_read.h"

namespace ghostrank {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw Error("cannot write " + path + ": " + std::strerror(error) +
                  (path == "stdout" ? "" : "; choose another file"),
              ErrorKind::environment);
}

constexpr int kMostLinks = 40;  // as the kernel follows

// The descriptor of this process that `path` names, as /dev/stdout and /dev/fd/3 do; else -1.
int descriptor_of(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path own = std::filesystem::canonical("/proc/self/fd", unknown);
  if (unknown) return -1;
  std::filesystem::path name = path;
  for (int i = 0; i < kMostLinks; ++i) {
    const std::filesystem::path folder = name.has_parent_path() ? name.parent_path() : ".";
    if (std::filesystem::canonical(folder, unknown) == own) {
      const std::string digits = name.filename().string();
      int number = -1;
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
      return number;
    }
    if (!std::filesystem::is_symlink(name, unknown)) break;
    name = folder / std::filesystem::read_symlink(name, unknown);
  }
  return -1;
}

// True for a descriptor that is open on a regular file. Opening its name would begin at the file's
// start, and a rename would leave the descriptor with a file that has no name.
bool is_open_file(int descriptor) {
  struct stat existing {};
  return descriptor >= 0 && fstat(descriptor, &existing) == 0 && S_ISREG(existing.st_mode);
}

bool is_writable(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) errno = EBADF;
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// Writes all that `from` holds to `to`. Returns false and leaves errno set when it cannot.
bool copy_all(int from, int to) {
  std::array<char, 65536> piece;
  off_t at = 0;
  while (true) {
    const ssize_t count = pread(from, piece.data(), piece.size(), at);
    if (count <= 0) return count == 0;
    at += count;
    for (ssize_t done = 0; done < count;) {
      const auto left = static_cast<std::size_t>(count - done);
      const ssize_t written = write(to, piece.data() + done, left);
      if (written < 0 && errno != EINTR) return false;
      done += std::max<ssize_t>(written, 0);
    }
  }
}

// Resolves symbolic links, because the rename must replace the file behind a link, not the link. A
// link may name a file that is still to be written.
std::string target_of(const std::string& path) {
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

// False for a device, a pipe or a descriptor: two flags may name the same one, because nothing
// replaces it.
bool is_same_file(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return a == b;
  const auto plain = [](const std::string& path) {
    const std::filesystem::path target = std::filesystem::absolute(target_of(path));
    std::error_code unknown;
    const std::filesystem::path resolved = std::filesystem::weakly_canonical(target, unknown);
    return unknown ? target.lexically_normal() : resolved;
  };
  return plain(a) == plain(b) && !(is_in_place(a) && is_in_place(b));
}

}  // namespace

// rename() would replace a device or a pipe.
bool is_in_place(const std::string& path) {
  struct stat existing {};
  return path == "-" || descriptor_of(path) >= 0 ||
         (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode));
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
  if (const int descriptor = descriptor_of(path); is_open_file(descriptor)) {
    path_ = path;
    if (!is_writable(descriptor)) cannot_write(path, errno);
    text_ = Fd(memfd_create("ghostrank output", MFD_CLOEXEC));
    if (!text_.is_open()) cannot_write(path, errno);
  } else if (!is_in_place(path_)) {
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

std::string Replacement::name() const {
  if (text_.is_open()) return "/proc/self/fd/" + std::to_string(text_.get());
  return name_.empty() ? path_ : name_;
}

void Replacement::keep() {
  if (text_.is_open()) {
    std::fflush(stdout);  // what was printed earlier comes first
    if (!copy_all(text_.get(), descriptor_of(path_))) cannot_write(path_, errno);
  }
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
