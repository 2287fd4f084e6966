// Jobs for the benchmarks: programs of one collective on an emulated cluster of one-GPU nodes.
//
// Threading: one thread; in_child() forks, so call it where no other thread runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"

namespace ghostrank::bench {

struct BenchJob {
  LoadedJob job;
  Workload workload;
};

// `ranks` one-GPU nodes in groups of `group`; every group plays `op` `calls` times per iteration.
// Links have no rate limit and no latency unless the caller sets them, because the engine is
// measured, not the model.
inline BenchJob collective_job(FabricKind kind, int ranks, int group, const Op& op, int calls) {
  BenchJob b;
  JobSpec& spec = b.job.spec;
  spec.cluster.nodes = ranks;
  spec.cluster.gpus_per_node = spec.cluster.nics_per_node = 1;
  spec.cluster.nic = {0, 0};
  spec.fabric.kind = kind;
  spec.dilation = 1;
  spec.run.warmup = 1;
  spec.run.iterations = 1;
  b.workload.ranks = ranks;
  b.workload.group_names = {"dp"};
  b.workload.role_of.assign(ranks, 0);
  for (int first = 0; first < ranks; first += group) {
    Group g;
    for (int r = first; r < std::min(ranks, first + group); ++r) g.members.emplace_back(r);
    b.workload.groups.push_back(g);
  }
  Program p{{"compute"}, {OpList(static_cast<std::size_t>(calls), op)}, {"op"}, 0};
  b.workload.roles.push_back({"bench", {p}});
  return b;
}

inline Op collective(Func func, std::uint64_t count) {
  Op op;
  op.kind = Op::Kind::collective;
  op.func = func;
  op.count = count;
  return op;
}

// The result of `play`, run in a child process, and what that process took.
struct InChild {
  double said = 0;
  double most_resident_kib = 0;
  double cpu_seconds = 0;  // user and system
};
std::optional<InChild> in_child(const std::function<double()>& play);  // empty: it failed

inline Result play(const BenchJob& b, Control& control) {
  Observer nobody;
  return run_job(b.job, b.workload, control, {}, nobody);
}

inline Result play_alone(const BenchJob& b) {
  const auto control = Control::meet(World{});
  return play(b, *control);
}

// Plans and plays one step of a job of profiles/jobs in virtual time. Returns its messages between
// nodes; 0: it did not end well.
inline double play_step(const std::string& name, const std::vector<std::string>& overrides) {
  std::vector<std::string> all{"fabric.kind=virtual", "run.warmup=0", "run.iterations=1"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const LoadedJob job = load_job(name, all);
  const auto control = Control::meet(World{});
  Observer nobody;
  const Result result = run_job(job, plan_workload(job.spec), *control, {}, nobody);
  return result.interrupted.empty() ? result.messages_per_iteration : 0;
}

}  // namespace ghostrank::bench
