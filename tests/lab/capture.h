// A packet capture of what one host of a lab sends, headers only, while it lives.
//
// Threading: one thread, that of the lab.
#pragma once

#include <string>

#include "tests/lab/lab.h"

namespace ghostrank::testing {

class Capture {
 public:
  // Returns once tcpdump listens.
  Capture(Lab& lab, int host);

  // Ends it once everything is in the file; false: packets were lost.
  bool stop();
  std::string file() const { return file_; }

 private:
  Lab& lab_;
  std::string file_, log_;
  pid_t tcpdump_ = -1;
};

}  // namespace ghostrank::testing
