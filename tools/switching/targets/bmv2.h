// The bmv2 target: p4lang's simple_switch on interfaces or on pcap files, with our v1model program
// and the entries of a plan, which may change while it runs on interfaces. Other programs run with
// a file of commands. p4c-bm2-ss compiles programs that are P4, ours too.
//
// Threading: main thread.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/net_table.h"
#include "switch/bmv2/entries.h"
#include "switch/ports/frame_ports.h"
#include "switch/ports/live.h"
#include "tools/report/files/temporary_file.h"
#include "tools/switching/running_switch.h"
#include "tools/switching/targets/gone_interface.h"
#include "tools/switching/targets/simple_switch.h"

namespace ghostrank {

struct Bmv2Run {
  std::string program;                    // JSON or .p4; empty: ours
  std::string compiled;                   // what the compiler has made of it; empty: not yet
  std::string entries;                    // file of commands, instead of a plan
  std::vector<switchml::PortName> ports;  // all interfaces or all files
};

class Bmv2Switch final : public RunningSwitch {
 public:
  // Starts simple_switch and sets it up. Without a plan it is told run.entries and has no jobs.
  // Throws Error(environment) when a program is missing or does not start, Error(usage) when the
  // plan does not fit the program.
  Bmv2Switch(const Bmv2Run& run, std::optional<switchml::SwitchPlan> plan);

  // Runs until `stop` is set, or until the files have been played at the pace of their time stamps.
  // Throws std::system_error when an interface is gone, after the final counters are in; Error when
  // simple_switch ends by itself.
  void run(const std::vector<switchml::Watch>& watches, const std::atomic<bool>& stop);

  const switchml::SwitchPlan& plan() const override { return plan_; }
  std::string admit(const switchml::JobPlan& job) override;
  bool remove(const std::string& job) override;
  bool reset(const std::string& job) override;
  // Of ports that are interfaces, frames and bytes are the kernel's counts.
  switchml::SwitchCounters counters() override;
  void stop() override { stopped_ = true; }

 private:
  struct Admitted {
    switchml::JobResources resources;
    switchml::Tables tables;
    bmv2::Setup setup;
    bmv2::Handles handles;
    switchml::JobCounters before;  // what earlier jobs of its number have counted
  };

  bool on_files() const { return ports_[0].interface.empty(); }
  // Starts simple_switch with a program and tells it of the plan, or of a file of commands.
  void start(const std::string& program, const std::vector<std::string>& links,
             const std::string& entries);
  std::vector<bmv2::Handles> set_up(const std::vector<const bmv2::Setup*>& setups);
  Admitted admitted(const switchml::JobPlan& job);
  std::vector<switchml::Tables> tables() const;
  switchml::SwitchCounters read_counters();
  void count_files(switchml::SwitchCounters& counters) const;
  // The index of a job of the plan; its size: there is none.
  std::size_t find(const std::string& job) const;

  std::vector<switchml::PortName> ports_;
  bool has_jobs_;
  int elements_;
  bool ours_;  // the program is ours
  switchml::SwitchPlan plan_;
  switchml::Allocation allocation_;
  TemporaryFolder folder_;  // of the compiled program and of links to files
  std::chrono::seconds files_after_{0};
  std::optional<SimpleSwitch> switch_;
  std::vector<Admitted> admitted_;  // of plan_.jobs
  NetTable table_;
  std::vector<Counters> began_;  // the kernel's counts of each port
  GoneInterface gone_;
  bool stopped_ = false;
  std::optional<switchml::SwitchCounters> last_;  // the final ones, once it has ended
};

}  // namespace ghostrank
