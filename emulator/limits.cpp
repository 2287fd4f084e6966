#include "emulator/limits.h"

#include <cstdlib>

#include "collectives/library.h"
#include "collectives/nccl/environment.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/time_outs.h"
#include "emulator/traffic/traffic.h"
#include "profiles/load/idle_keys.h"

namespace ghostrank {
namespace {

// Whether a job of `spec` plays the calls of `library`.
bool plays(const JobSpec& spec, const Workload& workload, Library library) {
  for (std::size_t job = 0; job < jobs_of(workload); ++job)
    if (library_named(spec.of_job(job).collectives.library) == library) return true;
  return false;
}

}  // namespace

std::vector<std::string> limits_of(const JobSpec& spec, const Workload& workload,
                                   const Cluster& cluster, bool wired, bool flows) {
  std::vector<std::string> notes = notes_of(spec, workload);
  for (std::string& note : short_time_outs(spec, workload, cluster))
    notes.push_back(std::move(note));
  if (is_network(spec.fabric.kind) && !wired)
    notes.push_back(spec.fabric.kind == FabricKind::packets
                        ? "nothing crossed the fabric; set fabric.colocated=wire to use it"
                        : "one process: nothing crossed the fabric; start several (WORLD_SIZE) to "
                          "use it");
  else if (is_network(spec.fabric.kind) && flows)
    notes.push_back(
        "cluster.nic.latency_us is recorded, not injected, between hosts: the real fabric has its "
        "own");
  if (cluster.is_slice())
    notes.push_back(
        "slice: the other nodes were played in virtual time before; they are late here by what the "
        "slice costs them, where their times followed from its messages");
  if (carries_over(workload))
    notes.push_back(workload.jobs.empty()
                        ? "streams outlive their iterations: the first measured one has nothing "
                          "carried into it, and the last one lasts until all is over"
                        : "streams outlive their iterations: a job's first one, which has nothing "
                          "carried into it, is played and not measured");
  if (plays(spec, workload, Library::generic))
    notes.push_back("library generic: textbook schedules, not those of a named library");
  if (plays(spec, workload, Library::nccl))
    for (const std::string& name : nccl_variables())
      if (std::getenv(name.c_str()))
        notes.push_back(name +
                        " is set in the environment and not followed; put it into "
                        "collectives.environment of the job");
  return notes;
}

bool is_deterministic(const JobSpec& spec, const Workload& workload, const Cluster& cluster) {
  const PacketSpec& packets = spec.fabric.packets;
  const bool faults = packets.loss + packets.duplicates + packets.reordering > 0;
  return spec.fabric.kind == FabricKind::virtual_time && spec.run.jitter == 0 &&
         !(faults && !cluster.schemes().empty() && sends_packets(spec, workload));
}

}  // namespace ghostrank
