// Files that a verb writes: looked at before it starts, so that a mistyped path costs no run, and
// written as a whole at its end, each whatever becomes of the others.
//
// Threading: main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ghostrank {

struct Output {
  std::string flag;  // "--json"
  std::string path;  // empty: not asked for; "-": stdout
};

// Throws Error(usage) when two outputs are the same file or both are stdout, or one is a file that
// this process has read as input, Error(environment) when one cannot be written. From then on a
// reader of stdout that goes away does not end the process where there is a file to write.
void check_outputs(const std::vector<Output>& outputs);

// A file that takes the place of `path` when it is whole: until keep() it has another name, beside
// it, and without keep() nothing stays of it. Devices and pipes are written in place. Throws
// Error as check_outputs() does.
class Replacement {
 public:
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  const std::string& name() const { return name_.empty() ? path_ : name_; }  // that is written
  void keep();

 private:
  std::string path_, name_;  // the name is empty where it is written in place
};

// Writes a file as a whole: under another name first, then renamed. "-" is stdout. Throws
// Error(environment).
void write_whole(const std::string& path, const std::string& text);

// Calls each of `writes`, also after one of them failed; says on stderr what failed. Returns the
// exit status: 0, or that of the last failure.
int write_each(const std::vector<std::function<void()>>& writes);

// The same of files by path; an empty path was not asked for.
struct TextFile {
  std::string path;
  std::function<std::string()> text;
};
int write_each(const std::vector<TextFile>& files);

}  // namespace ghostrank
