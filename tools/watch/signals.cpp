// See signals.h.
#include "tools/watch/signals.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace ghostrank {
namespace {

std::atomic<Control*> stopped_by_signal{nullptr};
std::atomic<int> received_signal{0};
static_assert(std::atomic<Control*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

constexpr unsigned kGraceSeconds = 20;  // batch systems kill 30 s after SIGTERM

void say(const char* text) {
  // If stderr is gone, nothing can be done about it.
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void give_up(int) {
  say("ghostrank: stopped by a signal; what was under way did not end in 20 s\n");
  _exit(128 + received_signal.load());
}

void default_again() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

void on_signal(int signal) {
  default_again();
  std::signal(SIGHUP, SIG_IGN);   // both the shell and the kernel send it when a terminal closes
  std::signal(SIGXCPU, SIG_IGN);  // it comes again with every second of processor time
  received_signal.store(signal);
  std::signal(SIGALRM, give_up);
  alarm(kGraceSeconds);
  if (Control* control = stopped_by_signal.load()) control->request_stop(Stop::interrupted);
}

auto hang_up_handler() {
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  return now.sa_handler;
}

}  // namespace

StopOnSignal::StopOnSignal(Control& control) {
  received_signal.store(0);
  stopped_by_signal.store(&control);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGXCPU, &action, nullptr);
  if (hang_up_handler() != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
}

void StopOnSignal::run_ended() { alarm(0); }

StopOnSignal::~StopOnSignal() {
  alarm(0);
  default_again();
  std::signal(SIGXCPU, SIG_DFL);
  if (hang_up_handler() == on_signal) std::signal(SIGHUP, SIG_DFL);
  stopped_by_signal.store(nullptr);
}

int StopOnSignal::received() const { return received_signal.load(); }

}  // namespace ghostrank
