// The switch that a job names with `switch.target`. One that the run plays on this machine is
// `ghostrank switch run` as another process, started before the job's processes connect, because
// their connections pass it too, and stopped after the job. If it ends before, so does the run:
// none of its messages would arrive. One that runs already is told of the job over its control
// socket, or by the controller that SwitchML publishes, if the job names either.
//
// Errors: Error(environment) when it cannot be started or asked. Threading: main thread; a thread
// of its own waits for the switch's end.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/packets/network_switch.h"
#include "profiles/job/job.h"
#include "tools/report/temporary_file.h"
#include "tools/switching/child.h"
#include "tools/switching/entry_template.h"

namespace ghostrank {

class JobSwitch final : public NetworkSwitch {
 public:
  // Every process of the job calls this at the same time; it returns when the switch serves. Null
  // where there is none to start or to tell, and on processes other than 0.
  static std::unique_ptr<JobSwitch> start(const JobSpec& spec, Control& control);
  explicit JobSwitch(const JobSpec& spec);
  ~JobSwitch() override;

  std::string admit(const SwitchJob& job) override;
  double processor_seconds() override;
  std::uint64_t memory_bytes() const override { return memory_bytes_; }

 private:
  void start_child(const SwitchSpec& sw);
  std::vector<std::string> plan_lines(const SwitchSpec& sw,
                                      const std::vector<NodeInterface>& nodes) const;
  std::string enter_session(const SwitchJob& job);
  void await_child();
  void watch_child(Control& control);

  const JobSpec& spec_;
  std::unique_ptr<TemporaryFolder> folder_;  // of a switch that was started
  std::unique_ptr<Child> child_;
  std::string socket_;
  std::vector<std::string> admitted_;
  std::uint64_t memory_bytes_ = 0;  // of their slots, on a switch that was started
  std::jthread watcher_;            // of child_
};

}  // namespace ghostrank
