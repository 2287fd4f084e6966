#include "emulator/process_checks.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "emulator/fabric/open.h"
#include "emulator/host/host_facts.h"
#include "emulator/host/hosts.h"
#include "emulator/traffic/schedules.h"
#include "profiles/error.h"
#include "profiles/job/events.h"
#include "profiles/planners/shared/machine_memory.h"
#include "profiles/planners/tensors.h"

namespace ghostrank {
namespace {

// Elements that one rank's buffer needs for the op.
std::uint64_t buffer_elements(const Workload& workload, const Op& op) {
  if (op.kind != Op::Kind::collective) return op.count;
  std::size_t size = 0;
  for (const Group& group : workload.groups)
    if (group.kind == op.group) size = std::max(size, group.members.size());
  return size == 0 ? 0 : call_elements(collective_of(workload, op, static_cast<int>(size)));
}

}  // namespace

void check_spread(const JobSpec& spec, int processes) {
  if (processes > 1 && !is_network(spec.fabric.kind)) {
    throw Error(spec.source_of("fabric.kind") +
                ": fabric.kind: memory and virtual run in one process, here are " +
                std::to_string(processes) + " (WORLD_SIZE); start one, or set fabric.kind=ofi");
  }
  if (processes > 1 && spec.fabric.kind == FabricKind::packets)
    throw Error(spec.source_of("fabric.kind") +
                ": fabric.kind: packets joins the namespaces of one process, here are " +
                std::to_string(processes) + " (WORLD_SIZE); start one, or set fabric.kind=ofi");
  if (spec.run.shards > 1 && spec.fabric.kind == FabricKind::packets)
    throw Error(spec.source_of("run.shards") +
                ": run.shards: fabric.kind packets has one engine thread, not " +
                std::to_string(spec.run.shards) + "; leave it out");
  if (spec.events)
    for (const JobEvent& event : spec.events->all)
      if (event.kind == JobEvent::Kind::kill && event.host.value() >= processes)
        throw Error(event.source + ": events: there is no host " + to_string(event.host) +
                    "; the job is played by hosts 0 to " + std::to_string(processes - 1) +
                    " (WORLD_SIZE)");
  const std::string key = spec.slice.empty() ? "cluster.nodes" : "scale.nodes";
  const int nodes =
      spec.slice.empty() ? spec.cluster.all_nodes() : static_cast<int>(spec.slice.size());
  if (processes > nodes) {
    throw Error(spec.source_of(key) + ": " + key + ": " + std::to_string(nodes) +
                " emulated nodes cannot be spread over " + std::to_string(processes) +
                " processes (WORLD_SIZE); start at most one per node");
  }
}

void check_processes(const JobSpec& spec, const Workload& workload, int processes) {
  check_spread(spec, processes);
  check_hosts(spec, processes);
  check_tensors(spec, workload);
  if (is_network(spec.fabric.kind)) check_fabric_built(spec.fabric.kind);
  if (!spec.run.verify) return;
  if (spec.fabric.colocated == Colocated::model) {
    throw Error(
        spec.source_of("run.verify") +
        ": run.verify: fabric.colocated model moves no data that could be verified; use memory");
  }
  std::uint64_t largest = 0;
  for (const Role& role : workload.roles) {
    for (const Program& program : role.iterations) {
      for (const auto& stream : program.streams) {
        for (const Op& op : stream.distinct()) {
          if (op.kind == Op::Kind::compute || op.kind == Op::Kind::record ||
              op.kind == Op::Kind::wait)
            continue;
          largest = std::max(largest, buffer_elements(workload, op) * bytes_of(op.dtype));
        }
      }
    }
  }
  // Each local rank needs its buffer, and as much again for messages in flight.
  const double need = 2.0 * static_cast<double>(largest) * workload.ranks / processes;
  const auto have = static_cast<double>(available_memory_bytes());
  if (have > 0 && need > 0.8 * have) {
    throw Error(spec.source_of("run.verify") +
                ": run.verify: real data for every rank needs about " +
                std::to_string(static_cast<long>(need / 1e9)) + " GB here, available are " +
                std::to_string(static_cast<long>(have / 1e9)) +
                " GB; use a smaller model or fewer ranks, or turn verify off");
  }
}

}  // namespace ghostrank
