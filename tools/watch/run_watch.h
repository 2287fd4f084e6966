// Watches a run from the terminal: says what will happen before it starts, shows progress, and
// keeps the iterations that have ended (KeptLines).
//
// Threading: called from the thread that called run_job.
#pragma once

#include <functional>
#include <string>

#include "emulator/engine.h"
#include "emulator/result/kept_iterations.h"
#include "profiles/load/load.h"
#include "tools/watch/kept_lines.h"
#include "tools/watch/patience.h"
#include "tools/watch/progress.h"

namespace ghostrank {

struct WatchOptions {
  std::string kept_beside;  // the result's file; empty: nothing is kept
  Progress::Mode progress = Progress::Mode::plain;
  bool announce = true;  // the block before the start
  bool first = true;     // process 0, which hears of the start
};

class RunWatch final : public Observer {
 public:
  RunWatch(const LoadedJob& job, Result identity, WatchOptions options);

  void on_start(const Result& started) override;
  void on_play(int iterations, bool measured) override;
  void on_iteration(int index, const IterationReport& report) override;
  void on_precision(double half_width) override;
  void on_progress(double fraction, double wall_seconds) override;
  void on_dilation(double from, double to, const std::string& why) override;

  void ended();         // clears the progress line
  void result_saved();  // the kept iterations are no longer needed

 private:
  void keep(const std::string& line);

  const LoadedJob& job_;
  Result identity_;  // version, argv, config, hosts, dilation: for the header of the kept file
  WatchOptions options_;
  Patience setting_up_;  // until the start
  Progress progress_;
  KeptLines kept_;
  KeptIterations sample_;  // which iterations of a run with an open end have a line
};

}  // namespace ghostrank
