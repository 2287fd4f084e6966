// The runner's end of the line to whoever started it: requests are lines of text, each gets one
// line in answer.
//
//   commands (commands.h), any number, then  commit     "ok" or "error WHAT"
//   counters                                            as printed at the end
//   stop                                                "ok", and the runner ends
//
// A line that closes ends the runner, too: nobody is left to stop it.
//
// Threading: the thread that serves it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ghostrank::dpdk {

class Control {
 public:
  // `obey`: carries out commands, or throws std::runtime_error; `counters`: as JSON; `stop`: ends
  // the runner.
  Control(int fd, std::function<void(const std::vector<std::string>&)> obey,
          std::function<std::string()> counters, std::function<void()> stop);
  int fd() const { return fd_; }

  // Takes what has come and answers. Does not wait.
  void serve();

 private:
  std::string answer(const std::string& line);

  int fd_;
  std::function<void(const std::vector<std::string>&)> obey_;
  std::function<std::string()> counters_;
  std::function<void()> stop_;
  std::string received_;               // the beginning of a line
  std::vector<std::string> commands_;  // until "commit"
};

}  // namespace ghostrank::dpdk
