// Plays runs as child processes of this program, for compare and sweep. A run is all processes of a
// job, on this machine.
//
// Threading: main thread; one Interruption at a time.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ghostrank {

// Blocks SIGINT, SIGTERM and SIGHUP while it lives; play_run() receives them. SIGHUP stays ignored
// where it was (nohup).
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  int received();  // the first signal received; 0: none
  // Waits for a signal, a child's end or a short time.
  void wait();
  const sigset_t& mask_before() const { return before_; }

 private:
  void note(int signal);
  sigset_t waited_{}, before_{};
  int received_ = 0;
};

struct RunOutcome {
  int status = 0;     // exit status of process 0; 128 + N if signal N ended it
  std::string words;  // its last line on stderr
};

// Starts `words` (a program and its arguments) as `processes` processes of one job and waits for
// their end. Several processes meet at MASTER_ADDR=127.0.0.1 and a free MASTER_PORT. Their stdin is
// empty; their output goes to `log`, one file per process (".1", ".2", ... after the first). If
// process 0 fails, the others are terminated. A signal is passed on to all; 20 s later they are
// killed. Throws Error(environment) if they cannot be started.
RunOutcome play_run(const std::vector<std::string>& words, int processes, const std::string& log,
                    Interruption& interruption);

// Starts `words` as one process like that, and returns at once; the caller waits for it. A run
// that this process does not outlive is terminated.
pid_t start_run(const std::vector<std::string>& words, const std::string& log,
                const Interruption& interruption);

// The last line of a log, without the program's name: why a run failed. Says of an empty one what
// may have kept it so.
std::string last_words(const std::string& log);

}  // namespace ghostrank
