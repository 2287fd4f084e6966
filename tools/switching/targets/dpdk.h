// The DPDK target: starts ghostrank-dpdk with a program and the table entries of a plan, and
// changes the entries while it runs. Other programs run with a file of entries.
//
// Threading: main thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "switch/ports/live.h"
#include "switch/tables.h"
#include "tools/switching/running_switch.h"
#include "tools/switching/targets/gone_interface.h"

namespace ghostrank {

class Child;

struct DpdkRun {
  std::string program;   // .spec or .p4; empty: ours for the plan's number of elements
  std::string compiled;  // what the compiler has made of a .p4; empty: not yet
  std::string entries;   // file of table entries, instead of a plan
  std::vector<std::string> ports;
  int cores = 1;            // > 1 needs interfaces and a plan without losses
  bool in_order = false;    // one packet at a time; always on files when the plan loses results
  bool as_written = false;  // play every instruction of the program unchanged
};

class DpdkSwitch final : public RunningSwitch {
 public:
  // Starts the runner. Without a plan it plays run.entries and has no jobs. Throws Error(usage)
  // when the plan does not fit the program, Error(environment) when ghostrank was built without
  // DPDK.
  DpdkSwitch(const DpdkRun& run, std::optional<switchml::SwitchPlan> plan);
  ~DpdkSwitch() override;

  // Runs until the files end or `stop` is set. Throws std::system_error when an interface is gone,
  // after the final counters are in; Error when the runner ends by itself with a failure.
  void run(const std::vector<switchml::Watch>& watches, const std::atomic<bool>& stop);
  double processor_seconds() const { return processor_seconds_; }

  const switchml::SwitchPlan& plan() const override { return plan_; }
  std::string admit(const switchml::JobPlan& job) override;
  bool remove(const std::string& job) override;
  bool reset(const std::string& job) override;
  switchml::SwitchCounters counters() override;
  void stop() override;

 private:
  // Sends commands to the runner; returns "" when it has carried them out, else the reason.
  std::string command(const std::vector<std::string>& lines);
  void forget_sums(const switchml::JobPlan& job, const switchml::JobResources& resources,
                   std::vector<std::string>& lines) const;

  bool has_jobs_ = false;  // the program is ours, or one with our tables
  int elements_ = 0;
  switchml::SwitchPlan plan_;
  bool ours_;  // the program is ours
  switchml::Allocation allocation_;
  std::vector<switchml::JobResources> resources_;  // of plan_.jobs
  GoneInterface gone_;
  std::unique_ptr<Child> child_;
  std::string last_;  // the final counters, once the runner has ended
  double processor_seconds_ = 0;
};

}  // namespace ghostrank
