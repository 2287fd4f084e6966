#include "emulator/host/hosts.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "emulator/host/host_facts.h"
#include "emulator/host/interfaces.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// One of the two names may be short: "s1" and "s1.example.org".
bool same_host(std::string_view a, std::string_view b) {
  const bool one_is_short = a.find('.') == a.npos || b.find('.') == b.npos;
  return same_name(a, b) ||
         (one_is_short && same_name(a.substr(0, a.find('.')), b.substr(0, b.find('.'))));
}

void check_placement(const JobSpec& spec, int processes) {
  VectorBy<Host, int> nodes(processes);
  for (const Host host : spec.placement.host_of_node) {
    if (host.value() >= processes)
      throw Error(spec.source_of("placement") + ": placement names host " + to_string(host) +
                  ", but the job was started as " + std::to_string(processes) +
                  " processes (WORLD_SIZE), numbered from 0; start more, or change the placement");
    if (host >= Host(0)) ++nodes[host];  // else a node that is not played
  }
  const auto idle = std::find(nodes.begin(), nodes.end(), 0);
  if (!spec.placement.host_of_node.empty() && idle != nodes.end())
    throw Error(spec.source_of("placement") + ": placement gives host " +
                std::to_string(idle - nodes.begin()) + " of " + std::to_string(processes) +
                " no node; give it one, or start fewer processes");
}

}  // namespace

void check_hosts(const JobSpec& spec, int processes) {
  if (!is_network(spec.fabric.kind)) return;
  const auto listed = static_cast<int>(spec.hosts.size());
  if (listed > 0 && listed != processes)
    throw Error(spec.source_of("hosts") + ": hosts lists " + std::to_string(listed) +
                ", but the job was started as " + std::to_string(processes) +
                (processes == 1 ? " process" : " processes") +
                " (WORLD_SIZE); start one process per host, '--print-launch' shows how");
  for (const HostEntry& host : spec.hosts) {
    if (host.nics.size() > 1 && spec.fabric.flows == FlowKind::process)
      throw Error(
          spec.source_of("hosts") + ": host " + host.name + " has " +
          std::to_string(host.nics.size()) +
          " rails, but with fabric.flows: process each process has one endpoint, on rail 0; "
          "set fabric.flows=nic or connection, or give one NIC");
  }
  if (processes > 1) check_placement(spec, processes);
}

const HostEntry* host_entry(const JobSpec& spec, Host host, int processes) {
  if (std::ssize(spec.hosts) != processes) return nullptr;
  return &spec.hosts[host.index()];
}

void check_this_host(const JobSpec& spec, Host host, int processes) {
  const HostEntry* entry = host_entry(spec, host, processes);
  if (!entry || same_host(entry->name, host_name()) || is_address_here(entry->name)) return;
  throw Error(spec.source_of("hosts") + ": hosts says that process " + to_string(host) +
                  " runs on " + entry->name + ", but it was started on " + host_name() +
                  "; start the processes in the order of the list, or correct the name",
              ErrorKind::environment);
}

std::string data_address(const JobSpec& spec, Host host, int processes,
                         const std::string& master_address, int nic) {
  const HostEntry* entry = host_entry(spec, host, processes);
  if (entry && !entry->nics.empty())
    return address_of_device(entry->nics[static_cast<std::size_t>(nic) % entry->nics.size()].device,
                             spec.source_of("hosts") + ": host " + entry->name);
  const std::string& bind = spec.fabric.bind;
  if (bind.empty()) return local_address_towards(master_address);
  for (const Interface& i : list_interfaces()) {
    if (i.name == bind) return address_of_device(bind, spec.source_of("fabric.bind"));
  }
  return bind;
}

}  // namespace ghostrank
