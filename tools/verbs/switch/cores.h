// The compiled switch on several cores: a switch of its own on each, and a slot's packets always to
// the same one (open_interfaces in switch/frame_ports.h), so that no sum is ever shared.
//
// Threading: made, asked and run on the main thread, which is also the first core; the others are
// threads that it starts and joins. A request is carried out by each core between two batches.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "switch/compiled.h"
#include "switch/frame_ports.h"
#include "switch/live.h"
#include "tools/verbs/switch/running_switch.h"

namespace ghostrank {

class SwitchOnCores final : public RunningSwitch {
 public:
  // Opens the interfaces. Throws std::system_error where that fails, and std::invalid_argument
  // where a job is refused or the plan has losses on purpose: their order is that of one core.
  SwitchOnCores(const switchml::SwitchPlan& plan, const std::vector<switchml::PortName>& ports,
                int cores, std::atomic<bool>& stop);
  ~SwitchOnCores() override;

  // Until told to stop.
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
    int bell = -1;               // an eventfd: there is something to do
    std::function<void()> task;  // set before the bell rings, empty when it is done
    std::atomic<bool> done{true};
    std::atomic<bool> ended{false};  // the core does nothing any more
    std::exception_ptr ended_by;     // what its ports threw; null: it was stopped
  };
  // On every core, one after the other; while they do not run, here.
  void on_each(const std::function<void(switchml::CompiledSwitch&)>& task);
  void work(Core& core, const std::vector<switchml::Watch>& watches);

  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<std::thread> threads_;  // of all cores but the first, while they run
  std::atomic<bool>& stop_;
};

}  // namespace ghostrank
