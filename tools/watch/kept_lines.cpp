#include "tools/watch/kept_lines.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

#include "profiles/error.h"

namespace ghostrank {

KeptLines::~KeptLines() {
  if (file_ != nullptr) std::fclose(file_);
}

void KeptLines::open(const std::string& result) {
  const std::string path = result + ".partial.jsonl";
  file_ = std::fopen(path.c_str(), "we");
  if (file_ == nullptr)
    throw Error(
        "cannot write " + path + ": " + std::strerror(errno) + "; choose another --json file",
        ErrorKind::environment);
  path_ = path;
}

std::string KeptLines::keep(const std::string& line) {
  if (file_ == nullptr) return "";
  if (std::fputs(line.c_str(), file_) >= 0 && std::fflush(file_) == 0) return "";
  const std::string why = std::strerror(errno);
  std::fclose(std::exchange(file_, nullptr));
  return why;
}

void KeptLines::empty() {
  if (file_ == nullptr) return;
  std::rewind(file_);
  // Where it cannot be cut, new lines follow the old ones.
  if (ftruncate(fileno(file_), 0) != 0) std::fseek(file_, 0, SEEK_END);
}

void KeptLines::remove() {
  if (path_.empty()) return;
  if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  std::remove(path_.c_str());
}

}  // namespace ghostrank
