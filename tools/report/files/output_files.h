// The files that a verb writes. The verb checks them before it starts, so that a mistyped path
// costs no run, and writes each as a whole at its end. One that fails does not keep the others from
// being written.
//
// Threading: main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "switch/ports/fd.h"

namespace ghostrank {

struct Output {
  std::string flag;  // "--json"
  std::string path;  // empty: not asked for; "-": stdout
};

// True for "-", a device, a pipe, and a name of a descriptor of this process (/dev/stdout): these
// are written in place, and nothing can lie beside them.
bool is_in_place(const std::string& path);

// Throws Error(usage) when two outputs are the same file, both are stdout, or one is a file that
// this process has read as input; Error(environment) when one cannot be written. If any output is a
// file, SIGPIPE is ignored from then on, so that a closed stdout does not end the process before
// the file is written.
void check_outputs(const std::vector<Output>& outputs);

// A new version of the file `path`. It is written to a temporary file beside `path`; keep() renames
// that to `path`, and the destructor removes it if keep() was not called. Devices and pipes are
// written in place. Where `path` names a descriptor that is open on a file, keep() writes to that
// descriptor: it appends to what the process that opened it has written. Throws Error as
// check_outputs() does.
class Replacement {
 public:
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  std::string name() const;  // write here
  void keep();

 private:
  std::string path_, name_;  // name_ is empty when path_ is written in place
  Fd text_;                  // holds the text for a descriptor until keep()
};

// Writes a file as a whole: under another name first, then renamed. "-" is stdout. Throws
// Error(environment).
void write_whole(const std::string& path, const std::string& text);

// Calls each of `writes` even after one has thrown Error, and prints each failure on stderr.
// Returns 0 or the exit status of the last failure.
int write_each(const std::vector<std::function<void()>>& writes);

// Writes the files by path; skips empty paths, which no flag named.
struct TextFile {
  std::string path;
  std::function<std::string()> text;
};
int write_each(const std::vector<TextFile>& files);

}  // namespace ghostrank
