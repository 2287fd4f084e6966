// A packet capture (headers only) of the traffic that one host of a lab sends.
//
// Threading: the lab's thread.
#pragma once

#include <string>

#include "tests/lab/lab.h"

namespace ghostrank::testing {

class Capture {
 public:
  // Returns once tcpdump listens.
  Capture(Lab& lab, int host);

  // Waits until all packets are in the file and ends tcpdump. False when packets were lost.
  bool stop();
  std::string file() const { return file_; }

 private:
  Lab& lab_;
  std::string file_, log_;
  pid_t tcpdump_ = -1;
};

}  // namespace ghostrank::testing
