// Runs another program of ours: keeps its output, and exchanges lines of text with it over a socket
// (descriptor 3 in the child).
//
// Errors are Error(environment). Threading: one owner.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "switch/ports/fd.h"

namespace ghostrank {

// The path of another program of ours: beside the command in a build, in libexec when installed.
// Empty: it was not built.
std::string program_of_ours(const std::string& name);

class Child {
 public:
  // words[0] is the program's path. The child reads `input` as its stdin; empty: it inherits ours.
  explicit Child(std::vector<std::string> words, const std::string& input = {});
  ~Child();  // ends the child
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends one line or more, each with its end.
  void send(std::string_view text);
  // The next line from the child, without its end; empty when the child has closed the socket.
  std::string receive();

  pid_t pid() const { return pid_; }  // -1 once status() was called

  // Readable when the child has printed or ended.
  int output_fd() const { return output_.get(); }
  // Waits for at most `patience`; true when there is output to read or the child has closed it.
  bool wait_output(std::chrono::milliseconds patience) const;
  // Appends new output to output(); false at the end of the output.
  bool read_output();
  const std::string& output() const { return printed_; }

  // Sends SIGTERM and waits for the end; does nothing if status() was called before.
  void end();
  // Waits for the child's end; returns the status of waitpid(2).
  int status();

 private:
  pid_t pid_ = -1;
  Fd output_, line_;
  std::string printed_, received_;
};

}  // namespace ghostrank
