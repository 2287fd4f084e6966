// Lines of text over a stream socket, both ways, without ever waiting: a switch reads requests and
// writes answers between two batches of frames, however slowly the other side does its part.
//
// Invariant: of what has come, at most one unfinished line (`most_line` bytes) and one receive are
// kept. What is said is kept until the other side takes it: the owner bounds it (unsent_bytes()).
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ghostrank::switchml {

class LineSocket {
 public:
  // Does not own `fd`; a line has at most `most_line` bytes without its end.
  LineSocket(int fd, std::size_t most_line) : fd_(fd), most_line_(most_line) {}

  // Takes what is there, at most once; false: nothing more will come.
  bool receive();
  // The next whole line, without its end.
  std::optional<std::string> next();
  // What came behind the last whole line; for a peer that ends its last line by closing.
  std::string rest();
  // A line is longer than allowed. No more lines come.
  bool overlong() const { return overlong_; }

  // Queues a line and sends what the socket takes; false: the peer is gone.
  bool say(std::string_view line);
  bool flush();
  std::size_t unsent_bytes() const { return unsent_.size() - sent_; }

 private:
  int fd_;
  std::size_t most_line_;
  std::string received_, unsent_;
  std::size_t taken_ = 0, sent_ = 0;  // of received_, of unsent_
  bool overlong_ = false;
};

}  // namespace ghostrank::switchml
