// SIGINT and SIGTERM while a run goes on: the first asks the run to stop everywhere, so that what
// was found is still written; a second one ends the process at once. So does the first, some time
// later, where the run is busy with something that does not look whether it is to stop, such as
// laying out a very large job.
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
  void run_ended();      // it looked: what is left to do may take as long as it takes
};

}  // namespace ghostrank
