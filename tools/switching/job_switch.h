// The switch that a job names with `switch.target`. One that the run plays on this machine is
// `ghostrank switch run` as another process, or several: leaves in switch.namespace, and a spine in
// a namespace of its own, joined by cables that vanish with the spine. The switches start before
// the job's processes connect, because the connections pass them too, and stop after the job. If a
// switch ends early, the run fails: its messages would not arrive. A switch that runs already is
// told of the job over its control socket, or by the controller that SwitchML publishes, if the job
// names either.
//
// Errors: Error(environment) when it cannot be started or asked. Threading: main thread; a thread
// of its own waits for the switch's end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/host/network_namespace.h"
#include "emulator/host/veth.h"
#include "emulator/packets/network_switch.h"
#include "profiles/job/job.h"
#include "tools/report/files/temporary_file.h"
#include "tools/switching/child.h"
#include "tools/switching/entry_template.h"
#include "tools/switching/switch_tree.h"

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
  void start_children(const SwitchSpec& sw);
  std::vector<std::vector<std::string>> lay_cables(const SwitchSpec& sw);
  std::string compiled_program(const SwitchSpec& sw) const;
  std::unique_ptr<Child> start_child(const SwitchSpec& sw, int at,
                                     const std::vector<std::string>& ports,
                                     const std::vector<NodeInterface>& nodes) const;
  std::vector<std::string> plan_lines(const SwitchSpec& sw, int at,
                                      const std::vector<NodeInterface>& nodes) const;
  std::string enter_session(const SwitchJob& job);
  std::string admit_part(const SwitchJob& job, const SwitchPart& part);
  void await_child(int at);
  void watch_children(Control& control);

  const JobSpec& spec_;
  const SwitchTree tree_;
  std::unique_ptr<TemporaryFolder> folder_;  // of switches that were started
  std::string compiled_;                     // their program, if it was P4
  std::optional<UnnamedNamespace> spine_space_;
  std::vector<std::unique_ptr<VethCable>> cables_;     // of leaf l to the spine
  std::vector<std::unique_ptr<Child>> children_;       // by switch
  std::vector<std::string> sockets_;                   // by switch
  std::vector<std::pair<int, std::string>> admitted_;  // switch, job
  std::uint64_t memory_bytes_ = 0;  // of their slots, on switches that were started
  std::jthread watcher_;            // of children_
};

}  // namespace ghostrank
