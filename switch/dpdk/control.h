// The runner's end of the line to whoever started it: requests are lines of text, each gets one
// line in answer.
//
//   commands (commands.h), any number, then  commit     "ok" or "error WHAT"
//   counters                                            as printed at the end
//   stop                                                "ok", and the runner ends
//
// When the other end closes, the runner ends, too: nobody is left to stop it. So it does after a
// request longer than kMostLine.
//
// Nothing waits for the other end: commands are gathered as they come and carried out when they are
// committed, an answer leaves as it is taken. The packets go on meanwhile.
//
// Threading: the thread that serves it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "switch/lines.h"

namespace ghostrank::dpdk {

class Control {
 public:
  static constexpr std::size_t kMostLine = 1 << 16;      // bytes, without its end
  static constexpr std::size_t kMostCommands = 1 << 26;  // bytes of them until "commit"

  // `obey`: carries out commands, or throws std::runtime_error; `counters`: as JSON; `stop`: ends
  // the runner. Throws std::system_error.
  Control(int fd, std::function<void(const std::vector<std::string>&)> obey,
          std::function<std::string()> counters, std::function<void()> stop);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Readable when there is something to serve.
  int fd() const { return ready_; }

  // Takes what has come, and answers. Does not wait.
  void serve();

 private:
  std::string answer(std::string line);
  std::string commit();
  void watch_for(bool room);

  int fd_;
  int ready_;  // an epoll: of fd_, for requests, or for room for an answer
  bool watches_room_ = false;
  switchml::LineSocket lines_;
  std::function<void(const std::vector<std::string>&)> obey_;
  std::function<std::string()> counters_;
  std::function<void()> stop_;
  std::vector<std::string> commands_;  // until "commit"
  std::size_t command_bytes_ = 0;
};

}  // namespace ghostrank::dpdk
