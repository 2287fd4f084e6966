// Findings on cores: the CPUs that a run may use here, which of them are near which network
// interface, and how to bind engine threads to them (see findings.h; the rules are in
// emulator/host/cores.h).
#include "emulator/host/cores.h"

#include <set>

#include "emulator/host/interfaces.h"
#include "profiles/input/quantity.h"
#include "tools/doctor/findings.h"

namespace ghostrank {
namespace {

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

Finding usable_finding(const std::vector<Cpu>& cpus, const std::vector<int>& numbers) {
  std::set<int> cores, numa_nodes;
  for (const Cpu& cpu : cpus) {
    cores.insert(cpu.core);
    if (cpu.numa_node >= 0) numa_nodes.insert(cpu.numa_node);
  }
  std::string value = counted(numbers.size(), "CPU") + " (" + number_list_text(numbers) + ") of " +
                      counted(cpus_of_machine().size(), "CPU");
  if (!numa_nodes.empty())
    value += ", " + counted(cores.size(), "core") + ", " + counted(numa_nodes.size(), "NUMA node");
  return {"cores", "usable", value};
}

Finding binding_finding(std::size_t usable) {
  const bool whole = usable == cpus_of_machine().size();
  return {"cores", "binding",
          whole ? "engine threads keep to the CPUs near their NIC; one core each with "
                  "'hosts: [{name: ..., cores: ...}]' or 'taskset'"
                : "one core per engine thread, up to " + counted(usable, "engine thread")};
}

Finding nic_finding(const Interface& nic, const std::vector<Cpu>& cpus, std::size_t index) {
  std::vector<int> near;
  for (const Cpu& cpu : cpus)
    if (cpu.near[index]) near.push_back(cpu.number);
  const bool all = near.size() == cpus.size();
  std::string value = all ? "no nearer to some CPUs than to others, or not known"
                          : "near to " + number_list_text(near);
  if (nic.numa_node >= 0) value += ", NUMA node " + std::to_string(nic.numa_node);
  return {"cores", nic.name, value};
}

}  // namespace

Findings look_at_cores() {
  const std::vector<int> usable = cpus_of_this_thread();
  std::vector<Interface> nics = list_interfaces();
  std::erase_if(nics, [](const Interface& i) { return i.name == "lo" || !i.up; });
  std::vector<std::string> devices;
  for (const Interface& nic : nics) devices.push_back(nic.name);
  const std::vector<Cpu> cpus = look_at_cpus(usable, devices);
  Findings findings{usable_finding(cpus, usable), binding_finding(usable.size())};
  const std::string hwloc = hwloc_version();
  findings.push_back(
      {"cores", "hwloc",
       hwloc.empty() ? "built without: every CPU counts as a core, none as near" : hwloc,
       hwloc.empty(),
       hwloc.empty() ? "sudo apt-get install libhwloc-dev   # and build again" : ""});
  for (std::size_t i = 0; i < nics.size(); ++i) findings.push_back(nic_finding(nics[i], cpus, i));
  return findings;
}

}  // namespace ghostrank
