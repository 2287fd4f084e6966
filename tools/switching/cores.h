// The compiled switch on several cores. Each core has its own switch and gets all packets of its
// slots (open_interfaces() in switch/ports/frame_ports.h), so that cores share no sums.
//
// Threading: made, asked and run on the main thread, which is also the first core; run() starts and
// joins a thread for each other core. Each core carries out a request between two batches.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "switch/compiled/compiled.h"
#include "switch/ports/fd.h"
#include "switch/ports/frame_ports.h"
#include "switch/ports/live.h"
#include "tools/switching/running_switch.h"

namespace ghostrank {

class SwitchOnCores final : public RunningSwitch {
 public:
  // Opens the interfaces. Throws std::system_error when that fails, std::invalid_argument when a
  // job is refused or the plan loses packets on purpose, because the order of such losses needs one
  // core.
  SwitchOnCores(const switchml::SwitchPlan& plan, const std::vector<switchml::PortName>& ports,
                int cores, std::atomic<bool>& stop);

  // Runs until stop().
  void run(const std::vector<switchml::Watch>& watches);

  const switchml::SwitchPlan& plan() const override { return cores_[0]->sw.plan(); }
  std::string admit(const switchml::JobPlan& job) override;
  bool remove(const std::string& job) override;
  bool reset(const std::string& job) override;
  switchml::SwitchCounters counters() override;
  void stop() override { stop_ = true; }

 private:
  struct Core {
    explicit Core(const switchml::SwitchPlan& plan) : sw(plan) {}
    switchml::CompiledSwitch sw;
    std::unique_ptr<switchml::FramePorts> frames;
    Fd bell;                     // eventfd: `task` is set
    std::function<void()> task;  // set before the bell rings, reset after it has run
    std::atomic<bool> done{true};
    std::atomic<bool> ended{false};  // the core's loop has returned
    std::exception_ptr ended_by;     // thrown by its ports; null: it was stopped
  };
  // Runs `task` for each core in turn: on the core while it runs, else on the caller's thread.
  void on_each(const std::function<void(switchml::CompiledSwitch&)>& task);
  void work(Core& core, const std::vector<switchml::Watch>& watches);

  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<std::thread> threads_;  // of all cores but the first, while they run
  std::atomic<bool>& stop_;
};

}  // namespace ghostrank
