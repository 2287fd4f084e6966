// The control of a running switch over a Unix socket: a request is a line of JSON, so is the
// answer.
//
//   {"do": "admit", "job": {...}}     the job as in a plan (docs/switch.md), or as YAML text
//   {"do": "remove", "job": "NAME"}   {"do": "reset", "job": "NAME"}
//   {"do": "counters"}                {"do": "stop"}
//
// Answers: {"ok": true, ...} or {"ok": false, "error": "what; what to do"}. The socket is reachable
// for its owner only (mode 0600).
//
// No client holds up the switch: requests are taken in as they come, carried out when they are
// whole, one between two batches of frames, and answers leave as they are taken. A client has
// `patience` to say its line, and as long again to take the answer; then it is dropped. A line has
// at most kMostRequest bytes. kMostClients are heard at once; further ones wait until there is
// room.
//
// Threading: everything on the switch's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "switch/lines.h"
#include "switch/live.h"
#include "tools/verbs/switch/running_switch.h"

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

  // Ready whenever a client wants something.
  switchml::Watch watch();

 private:
  using Clock = std::chrono::steady_clock;

  class Descriptor {
   public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { close(); }
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    void close();

   private:
    int fd_;
  };

  struct Client {
    Descriptor socket;
    switchml::LineSocket lines;
    Clock::time_point until;
    bool answered = false;
    bool stops = false;  // it asked to stop
  };

  void listen_at_path();
  void serve();
  void accept_clients();
  // True when it carried out a request; closes the client's socket when it is over.
  bool advance(Client& client);
  void answer(Client& client, const std::string& request);
  void deliver(Client& client);
  void drop_late_clients();
  void set_alarm();
  void watch_for(int operation, int fd, unsigned events);

  std::string path_;
  RunningSwitch& switch_;
  std::chrono::milliseconds patience_;
  Descriptor listener_;
  Descriptor alarm_;  // a timer: the first client is late
  Descriptor ready_;  // an epoll: of the others and of all clients
  std::vector<Client> clients_;
  bool full_ = false;       // nobody is accepted
  Descriptor stopper_{-1};  // of who asked to stop: it stays open until the end
};

// What ask_switch() waits for: the answer, or that the switch carries no more and that another can
// listen at `path`.
enum class Until { answered, stopped };

// Sends a request to the switch at `path` and returns its answer. Throws Error(environment) when
// nobody answers.
std::string ask_switch(const std::string& path, const std::string& request,
                       Until until = Until::answered);

}  // namespace ghostrank
