// The runner's end of the control line to the process that started it. Requests are lines of text;
// each gets one line as its answer.
//
//   commands (commands.h), any number, then  commit     "ok" or "error WHAT"
//   counters                                            as printed at the end
//   stop                                                "ok", and the runner ends
//
// The runner ends when the other end closes, because nobody is left to stop it, and after a request
// longer than kMostLine.
//
// Nothing waits for the other end: commands are gathered as they arrive and carried out at
// "commit", and an answer is sent as the other end takes it. Packets are handled meanwhile.
//
// Threading: the thread that calls serve().
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "switch/lines.h"
#include "switch/ports/fd.h"

namespace ghostrank::dpdk {

class Control {
 public:
  static constexpr std::size_t kMostLine = 1 << 16;      // bytes of a line, without its end
  static constexpr std::size_t kMostCommands = 1 << 26;  // bytes of all commands before "commit"

  // `obey` carries out commands or throws std::runtime_error; `counters` gives JSON; `stop` ends
  // the runner. Throws std::system_error.
  Control(int fd, std::function<void(const std::vector<std::string>&)> obey,
          std::function<std::string()> counters, std::function<void()> stop);

  // A descriptor that is readable when serve() has work.
  int fd() const { return ready_.get(); }

  // Takes received requests and sends answers. Does not wait.
  void serve();

 private:
  std::string answer(std::string line);
  std::string commit();
  void watch_for(bool room);

  int fd_;
  Fd ready_;  // an epoll set: fd_, for requests or for room for an answer
  bool watches_room_ = false;
  switchml::LineSocket lines_;
  std::function<void(const std::vector<std::string>&)> obey_;
  std::function<std::string()> counters_;
  std::function<void()> stop_;
  std::vector<std::string> commands_;  // until "commit"
  std::size_t command_bytes_ = 0;
};

}  // namespace ghostrank::dpdk
