// SIGINT and SIGTERM while a run goes on: the first asks the run to stop everywhere, so that what
// was found is still written; a second one ends the process at once. So does the first, some time
// later, where the run is busy with something that does not look whether it is to stop, such as
// laying out a very large job.
//
// Threading: one instance at a time, made and destroyed by the main thread.
#pragma once

#include "emulator/control.h"

namespace ghostrank {

// Gives SIGINT, SIGTERM and SIGABRT their default effect again. libfabric may bring along a
// library (that of the first InfiniPath adapters) that answers them with exit(1) from the moment it
// is loaded; users and launchers were promised 130, 143 and an abort. An ignored signal stays so.
void take_back_signals();

// Libraries that come with libfabric's providers catch signals as they are loaded, and then end the
// process with status 1: gives back what the kernel does, to all that are not ignored. While they
// load, before main, nothing can be done.
void forget_caught_signals();

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
