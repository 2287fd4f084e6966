// SIGINT, SIGTERM, SIGHUP and SIGXCPU (ulimit -S -t) during a run. The first signal asks every
// process to stop, so that the results found so far are still written; a second SIGINT or SIGTERM
// ends the process at once. The first one ends it too, after 20 s, when the run is busy in code
// that does not check for the request, such as laying out a very large job. SIGHUP stays ignored
// where it was (nohup).
//
// Threading: one instance at a time, made and destroyed by the main thread.
#pragma once

#include "emulator/control/control.h"

namespace ghostrank {

class StopOnSignal {
 public:
  explicit StopOnSignal(Control& control);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  int received() const;  // the signal's number, or 0
  void run_ended();      // the run has stopped: writing what it found has no deadline
};

}  // namespace ghostrank
