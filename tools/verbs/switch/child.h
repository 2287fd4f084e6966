// Another program of ours, started by the command: what it prints is kept, and a line of text leads
// to it and back (descriptor 3 over there).
//
// Errors are Error(environment). Threading: one owner.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace ghostrank {

class Child {
 public:
  // words[0]: the program's path. `input`: a file that it reads, else ours.
  explicit Child(std::vector<std::string> words, const std::string& input = {});
  ~Child();  // ends it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends a line, or several.
  void send(std::string_view text);
  // The next line that comes back, without its end; empty where the child has closed.
  std::string receive();

  // Readable when it has printed, or ended.
  int output_fd() const { return output_; }
  // True when there is something to read; waits so long at most.
  bool wait_output(std::chrono::milliseconds patience) const;
  // Takes what it has printed; false when it will print no more.
  bool read_output();
  const std::string& output() const { return printed_; }

  // Ends it with SIGTERM, if it has not ended.
  void end();
  // Waits for its end; as waitpid(2) gives it.
  int status();

 private:
  pid_t pid_ = -1;
  int output_ = -1, line_ = -1;
  std::string printed_, received_;
};

}  // namespace ghostrank
