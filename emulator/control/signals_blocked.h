// Blocks SIGINT and SIGTERM in the calling thread for the length of a scope. Threads started
// meanwhile inherit the block for good. A blocked signal goes to another thread or waits for the
// end of the scope.
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
