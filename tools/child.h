// Another program of ours, started by the command: what it prints is kept, and a line of text leads
// to it and back (descriptor 3 over there).
//
// Errors are Error(environment). Threading: one owner.
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace ghostrank {

class Child {
 public:
  // words[0]: the program's path.
  explicit Child(std::vector<std::string> words);
  ~Child();  // ends it, if it has not ended
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends a line, or several.
  void send(std::string_view text);
  // The next line that comes back, without its end; empty where the child has closed.
  std::string receive();

  // Readable when it has printed, or ended.
  int output_fd() const { return output_; }
  // Takes what it has printed; false when it will print no more.
  bool read_output();
  const std::string& output() const { return printed_; }

  // Waits for its end; as waitpid(2) gives it.
  int status();

 private:
  pid_t pid_ = -1;
  int output_ = -1, line_ = -1;
  std::string printed_, received_;
};

}  // namespace ghostrank
