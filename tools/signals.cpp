// See signals.h.
#include "tools/signals.h"

#include <csignal>

namespace ghostrank {
namespace {

std::atomic<Control*> stopped_by_signal{nullptr};
std::atomic<int> received_signal{0};
static_assert(std::atomic<Control*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void default_again() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

void on_signal(int signal) {
  default_again();
  received_signal.store(signal);
  if (Control* control = stopped_by_signal.load()) control->request_stop(Stop::interrupted);
}

}  // namespace

void take_back_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGABRT}) {
    struct sigaction current {};
    if (sigaction(number, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      std::signal(number, SIG_DFL);
  }
}

StopOnSignal::StopOnSignal(Control& control) {
  received_signal.store(0);
  stopped_by_signal.store(&control);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

StopOnSignal::~StopOnSignal() {
  default_again();
  stopped_by_signal.store(nullptr);
}

int StopOnSignal::received() const { return received_signal.load(); }

}  // namespace ghostrank
