// What another program is to read while this one runs: a file or a folder among the temporary ones
// (TMPDIR), gone when its owner is.
//
// Errors are Error(environment): nobody may read half of what was meant. Threading: one owner.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

// Writes lines to a new file, or over an old one.
void write_lines(const std::string& path, const std::vector<std::string>& lines);

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<std::string>& lines);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace ghostrank
