// Plays a loaded job in this process.
#pragma once

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "emulator/shard/ranks/lone_ports.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"

namespace ghostrank::testing {

inline Result play(const LoadedJob& job, const Workload& workload) {
  const auto control = Control::meet(World{});
  Observer nobody;
  return run_job(job, workload, *control, {}, nobody);
}

inline Result play(const LoadedJob& job) { return play(job, plan_workload(job.spec)); }

// Whether transfers inside a node have their ports for themselves.
inline bool has_lone_ports(const JobSpec& spec, const Workload& workload) {
  const Cluster cluster(spec, workload, 1);
  const Schedules schedules(spec, workload, cluster);
  return LonePorts(workload, cluster, schedules).any();
}

}  // namespace ghostrank::testing
