// Controls a running switch over a Unix socket. A request is one line of JSON, and so is its
// answer.
//
//   {"do": "admit", "job": {...}}     the job as in a plan (docs/switch.md), or as YAML text
//   {"do": "remove", "job": "NAME"}   {"do": "reset", "job": "NAME"}
//   {"do": "counters"}                {"do": "stop"}
//
// Answers: {"ok": true, ...} or {"ok": false, "error": "what; what to do"}. Only the socket's owner
// can connect (mode 0600).
//
// No client holds up the switch: it reads requests as bytes arrive, carries out whole ones between
// two batches of frames, one at a time, and sends answers as clients take them. A client has
// `patience` to send its line and as long again to take the answer; then the switch drops it. A
// line has at most kMostRequest bytes. At most kMostClients are connected at once; others wait in
// the backlog.
//
// Threading: all calls on the switch's thread, except ask_switch(), which clients call.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "switch/lines.h"
#include "switch/ports/fd.h"
#include "switch/ports/live.h"
#include "tools/switching/running_switch.h"

namespace ghostrank {

// The answer to one request, without the line's end.
std::string answer_switch(RunningSwitch& sw, std::string_view request);

class SwitchControl {
 public:
  static constexpr std::size_t kMostRequest = 1 << 16;
  static constexpr std::size_t kMostClients = 16;

  // Listens at `path`, replacing a socket that nobody listens on. Throws Error(environment).
  SwitchControl(std::string path, RunningSwitch& sw,
                std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~SwitchControl();
  SwitchControl(const SwitchControl&) = delete;
  SwitchControl& operator=(const SwitchControl&) = delete;

  // Becomes ready when a client needs service.
  switchml::Watch watch();

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    Fd socket;
    switchml::LineSocket lines;
    Clock::time_point until;
    bool answered = false;
    bool stops = false;  // it asked to stop
  };

  void listen_at_path();
  void serve();
  void accept_clients();
  // True when it carried out a request. Closes the client's socket when the client is done.
  bool advance(Client& client);
  void answer(Client& client, const std::string& request);
  void deliver(Client& client);
  void drop_late_clients();
  void set_alarm();
  void watch_for(int operation, int fd, unsigned events);

  std::string path_;
  RunningSwitch& switch_;
  std::chrono::milliseconds patience_;
  Fd listener_;
  Fd alarm_;  // timerfd: fires at the first client's deadline
  Fd ready_;  // epoll over listener_, alarm_ and all clients
  std::vector<Client> clients_;
  bool full_ = false;  // kMostClients are connected: accept no more
  Fd stopper_;         // the client that asked to stop; stays open until the end
};

// What ask_switch() waits for: `answered`: the answer; `stopped`: also the end of the switch, so
// that another can listen at `path`.
enum class Until { answered, stopped };

// Sends a request to the switch at `path` and returns its answer. Throws Error(environment) when
// nobody answers.
std::string ask_switch(const std::string& path, const std::string& request,
                       Until until = Until::answered);

}  // namespace ghostrank
