// The DPDK target: starts ghostrank-dpdk with a program and the table entries of a plan, and
// changes them while it runs. Any other program runs with entries of its own.
//
// Threading: main thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "switch/live.h"
#include "switch/tables.h"
#include "tools/verbs/switch/running_switch.h"

namespace ghostrank {

class Child;

struct DpdkRun {
  std::string program;  // .spec; empty: ours for the plan's number of elements
  std::string entries;  // file of table entries, in place of a plan
  std::vector<std::string> ports;
  int cores = 1;            // more: on interfaces, with a plan without losses; slots are dealt out
  bool in_order = false;    // one packet at a time; always so on files where the plan loses results
  bool as_written = false;  // every instruction of the program
};

class DpdkSwitch final : public RunningSwitch {
 public:
  // Starts it. Without a plan, it has the entries of a file, and no jobs. Throws Error: usage where
  // the plan does not fit the program, environment where ghostrank was built without DPDK.
  DpdkSwitch(const DpdkRun& run, std::optional<switchml::SwitchPlan> plan);
  ~DpdkSwitch() override;

  // Until the files end, or `stop`. Throws Error where it ends by itself.
  void run(const std::vector<switchml::Watch>& watches, const std::atomic<bool>& stop);
  double processor_seconds() const { return processor_seconds_; }

  const switchml::SwitchPlan& plan() const override { return plan_; }
  std::string admit(const switchml::JobPlan& job) override;
  bool remove(const std::string& job) override;
  bool reset(const std::string& job) override;
  switchml::SwitchCounters counters() override;
  void stop() override;

 private:
  // Empty when the runner has done so, else why not.
  std::string command(const std::vector<std::string>& lines);
  void forget_sums(const switchml::JobPlan& job, const switchml::Placement& place,
                   std::vector<std::string>& lines) const;

  bool has_jobs_ = false;  // the program is ours, or one with our tables
  int elements_ = 0;
  switchml::SwitchPlan plan_;
  switchml::Allocation allocation_;
  std::vector<switchml::Placement> places_;  // of plan_.jobs
  std::unique_ptr<Child> child_;
  std::string last_;  // counters, when it has ended
  double processor_seconds_ = 0;
};

}  // namespace ghostrank
