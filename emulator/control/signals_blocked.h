// For the length of a scope no SIGINT or SIGTERM comes to the calling thread, nor ever to a thread
// that it starts meanwhile: what comes waits for the end of the scope, or goes to another thread.
#pragma once

#include <csignal>

namespace ghostrank {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t asked{};
    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &asked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace ghostrank
