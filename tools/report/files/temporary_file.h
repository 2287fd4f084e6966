// A temporary file or folder (below TMPDIR) that another program reads while this one runs; its
// owner's destructor removes it.
//
// Errors are Error(environment), also for a file that is written only in part. Threading: one
// owner.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

// Writes lines to a file, replacing its content.
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
