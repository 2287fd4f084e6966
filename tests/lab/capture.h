// A packet capture (headers only) of the traffic that one host of a lab sends.
//
// Threading: the lab's thread.
#pragma once

#include <deque>
#include <string>

#include "tests/lab/lab.h"

namespace ghostrank::testing {

class Capture {
 public:
  // Whether tcpdump is on PATH.
  static bool possible();
  // Returns once tcpdump listens; throws std::runtime_error if it does not.
  Capture(Lab& lab, int host, const std::string& protocol = "tcp");

  // Waits until all packets are in the file and ends tcpdump. False when packets were lost.
  bool stop();
  // The same for several, which takes no longer than for one.
  static bool stop_all(std::deque<Capture>& captures);
  std::string file() const { return file_; }

 private:
  bool end();  // false when packets were lost

  Lab& lab_;
  std::string file_, log_;
  pid_t tcpdump_ = -1;
};

}  // namespace ghostrank::testing
