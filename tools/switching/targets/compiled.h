// The compiled switch as a RunningSwitch.
//
// Threading: main thread.
#pragma once

#include <atomic>

#include "switch/compiled/compiled.h"
#include "tools/switching/running_switch.h"

namespace ghostrank {

class RunningCompiled final : public RunningSwitch {
 public:
  RunningCompiled(switchml::CompiledSwitch& sw, std::atomic<bool>& stop)
      : switch_(sw), stop_(stop) {}

  const switchml::SwitchPlan& plan() const override { return switch_.plan(); }
  std::string admit(const switchml::JobPlan& job) override { return switch_.admit(job); }
  bool remove(const std::string& job) override { return switch_.remove(job); }
  bool reset(const std::string& job) override { return switch_.reset(job); }
  switchml::SwitchCounters counters() override { return switch_.counters(); }
  void stop() override { stop_ = true; }

 private:
  switchml::CompiledSwitch& switch_;
  std::atomic<bool>& stop_;
};

}  // namespace ghostrank
