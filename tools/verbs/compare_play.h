// Plays runs as child processes of this program: one run is all processes of a job on this machine.
//
// Threading: main thread; one Interruption at a time.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace ghostrank {

// Holds SIGINT and SIGTERM back while it lives, so that they arrive where play_run() asks for them.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  int received();  // the first signal that came; 0 if none did
  // Waits for a signal, a child's end or a moment.
  void wait();
  const sigset_t& mask_before() const { return before_; }

 private:
  void note(int signal);
  sigset_t waited_{}, before_{};
  int received_ = 0;
};

struct RunOutcome {
  int status = 0;     // exit status of process 0; 128 + N if signal N ended it
  std::string words;  // the last line that it wrote to stderr
};

// Starts `words` (a program and its arguments) as `processes` processes of one job, found by
// MASTER_ADDR=127.0.0.1 and a free MASTER_PORT where there are several, and waits for their end.
// They read nothing; what they print goes to `log`, each process to its own file (".1", ".2", ...
// beyond the first). Where process 0 fails, the others are ended. A signal is passed on to them;
// 20 s later they are killed. Throws Error(environment) when they cannot be started.
RunOutcome play_run(const std::vector<std::string>& words, int processes, const std::string& log,
                    Interruption& interruption);

}  // namespace ghostrank
