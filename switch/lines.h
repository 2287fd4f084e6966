// Lines of text over a stream socket, in both directions, without ever waiting: a switch reads
// requests and writes answers between two batches of frames, however slow the other side is.
//
// Invariant: of received data, at most one unfinished line (`most_line` bytes) and one receive are
// kept. Outgoing lines are kept until the other side takes them; the owner bounds them
// (unsent_bytes()).
//
// Units: bytes. Threading: one owner.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ghostrank::switchml {

class LineSocket {
 public:
  // Does not own `fd`. A line has at most `most_line` bytes, without its end.
  LineSocket(int fd, std::size_t most_line) : fd_(fd), most_line_(most_line) {}

  // Receives what is there, with one call; false: nothing more will come.
  bool receive();
  // The next whole line, without its end; empty: none yet.
  std::optional<std::string> next();
  // The text after the last whole line, for a peer that ends its last line by closing.
  std::string rest();
  // A line exceeded `most_line`. next() gives no more lines.
  bool overlong() const { return overlong_; }

  // Queues a line and sends as much as the socket takes; false: the peer is gone.
  bool say(std::string_view line);
  bool flush();
  std::size_t unsent_bytes() const { return unsent_.size() - sent_; }

 private:
  int fd_;
  std::size_t most_line_;
  std::string received_, unsent_;
  std::size_t taken_ = 0, sent_ = 0;  // offsets in received_ and unsent_
  bool overlong_ = false;
};

}  // namespace ghostrank::switchml
