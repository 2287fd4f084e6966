// Watches the phases of a bench: reports once that the session is assembled, shows progress on a
// terminal (nothing elsewhere), and fails the run when a phase takes too long.
//
// Threading: called from the thread that plays the session.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "emulator/control/control.h"
#include "emulator/engine.h"

namespace ghostrank {

class BenchWatch final : public Observer {
 public:
  // `started` is called once, on process 0, before the first phase. `live`: stderr is a terminal
  // and shows progress.
  BenchWatch(std::size_t phases, bool live, std::function<void(const Result&)> started);
  // Fails the run when a phase, with all that is played for it, takes more than `seconds` of wall
  // time. Called on process 0.
  void set_timeout(int seconds, Control& control);
  ~BenchWatch() override { clear(); }
  BenchWatch(const BenchWatch&) = delete;
  BenchWatch& operator=(const BenchWatch&) = delete;

  void begin(std::size_t phase, std::string what);  // "1 MiB"
  void clear();                                     // removes the line

  void on_start(const Result& started) override;
  void on_play(int iterations, bool measured) override;
  void on_progress(double fraction, double wall_seconds) override;

 private:
  void check_time();

  std::size_t phases_, phase_ = 0;
  bool live_, painted_ = false;
  std::function<void(const Result&)> started_;
  std::string what_;
  int timeout_s_ = 0;  // 0: none
  std::chrono::steady_clock::time_point began_;
  Control* control_ = nullptr;
};

}  // namespace ghostrank
