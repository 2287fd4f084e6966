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
// Threading: everything on the switch's thread.
#pragma once

#include <string>
#include <string_view>

#include "switch/live.h"
#include "tools/running_switch.h"

namespace ghostrank {

// The answer to one request, without the line's end.
std::string answer_switch(RunningSwitch& sw, std::string_view request);

class SwitchControl {
 public:
  // Listens at `path`, replacing a socket that nobody listens on. Throws Error(environment).
  SwitchControl(std::string path, RunningSwitch& sw);
  ~SwitchControl();
  SwitchControl(const SwitchControl&) = delete;
  SwitchControl& operator=(const SwitchControl&) = delete;

  // Ready whenever a client wants something.
  switchml::Watch watch();

 private:
  void serve();

  std::string path_;
  RunningSwitch& switch_;
  int fd_ = -1;
  int client_ = -1;  // of who asked to stop: it stays open until the end
};

// What ask_switch() waits for: the answer, or that the switch carries no more and that another can
// listen at `path`.
enum class Until { answered, stopped };

// Sends a request to the switch at `path` and returns its answer. Throws Error(environment) when
// nobody answers.
std::string ask_switch(const std::string& path, const std::string& request,
                       Until until = Until::answered);

}  // namespace ghostrank
