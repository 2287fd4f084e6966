// What has ended so far of something long, line by line in FILE.partial.jsonl, until the whole
// result is written. A disk that is full ends the keeping, not what is played.
//
// Threading: one owner.
#pragma once

#include <cstdio>
#include <string>

namespace ghostrank {

class KeptLines {
 public:
  KeptLines() = default;
  ~KeptLines();
  KeptLines(const KeptLines&) = delete;
  KeptLines& operator=(const KeptLines&) = delete;

  // Begins the file that is kept beside `result`. Throws Error(environment).
  void open(const std::string& result);
  // Returns why nothing is kept from now on; empty: the line is, or nothing was to be kept.
  std::string keep(const std::string& line);
  // Begins the file anew.
  void empty();
  // The whole result has been written.
  void remove();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::FILE* file_ = nullptr;  // null: nothing is kept
};

}  // namespace ghostrank
