// Watches the phases of a bench: says once what has been assembled, and shows on a terminal how far
// it is. Silent elsewhere. Ends the run when a phase takes too long.
//
// Threading: called from the thread that plays the session.
#pragma once

#include <functional>
#include <string>

#include "emulator/control/control.h"
#include "emulator/engine.h"

namespace ghostrank {

class BenchWatch final : public Observer {
 public:
  // `started` is called once, on process 0, before the first phase is played. Live: stderr is a
  // terminal and progress is wanted there.
  BenchWatch(std::size_t phases, bool live, std::function<void(const Result&)> started);
  // A phase that takes more wall time than that fails the run. Process 0 asks for it.
  void set_timeout(int seconds, Control& control);
  ~BenchWatch() override { clear(); }
  BenchWatch(const BenchWatch&) = delete;
  BenchWatch& operator=(const BenchWatch&) = delete;

  void begin(std::size_t phase, std::string what);  // "1 MiB"
  void clear();                                     // removes the line

  void on_start(const Result& started) override;
  void on_progress(double fraction, double wall_seconds) override;

 private:
  std::size_t phases_, phase_ = 0;
  bool live_, painted_ = false;
  std::function<void(const Result&)> started_;
  std::string what_;
  int timeout_s_ = 0;  // 0: none
  Control* control_ = nullptr;
};

}  // namespace ghostrank
