#include "profiles/planners/schedulers/dear.h"

#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/planners/schedulers/fusion.h"
#include "profiles/planners/schedulers/modules.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kScatter = 1, kGather = 2;
constexpr std::uint16_t kGatherers = kDataParallel + 1;
constexpr double kMebibyte = 1 << 20;

struct DearPlan {
  std::vector<Module> modules;
  std::vector<FusedGroup> groups;
  Picoseconds before_forward;
  DataType gradients;
  std::uint64_t ranks;
  bool reduce;  // reduce and broadcast in place of reduce-scatter and all-gather

  std::uint64_t padded(std::size_t g) const {
    return groups[g].numel + ranks - groups[g].numel % ranks;
  }
  // The group's first module with parameters; no module if there is no such group.
  std::size_t front(std::size_t g) const {
    if (g == groups.size()) return modules.size();
    std::size_t m = groups[g].first;
    while (modules[m].numel == 0) ++m;
    return m;
  }
};

std::vector<FusedGroup> groups_of(const JobSpec& spec, const std::vector<Module>& modules) {
  const ParallelPlan& parallel = spec.parallel;
  switch (parallel.fusion) {
    case Fusion::none:
      return fuse_by_count(modules, 1);
    case Fusion::layers:
      return fuse_by_count(modules, static_cast<std::size_t>(parallel.nearby_layers));
    case Fusion::waiting_time:
      return fuse_by_waiting(modules,
                             static_cast<Picoseconds>(parallel.wait_ms * 1e3 * kPicosPerMicro));
    case Fusion::size:
      break;
  }
  if (parallel.threshold_mb <= 0)
    throw Error(spec.source_of("parallel.threshold_mb") +
                ": a fusion threshold of 0 MiB fuses nothing; give a size, or use "
                "parallel.fusion=none for a call per module");
  return fuse_by_size(modules, bytes_of(spec.precision.gradients),
                      parallel.threshold_mb * kMebibyte);
}

void first_half(ProgramBuilder& out, const DearPlan& plan, std::size_t g) {
  if (plan.reduce)
    out.collective(kScatter, "reduce " + std::to_string(g), Func::reduce, kDataParallel,
                   plan.gradients, plan.groups[g].numel, 0, g + 1);
  else
    out.collective(kScatter, "reduce-scatter " + std::to_string(g), Func::reduce_scatter,
                   kDataParallel, plan.gradients, plan.padded(g) / plan.ranks, 0, g + 1);
}

void second_half(ProgramBuilder& out, const DearPlan& plan, std::size_t g) {
  if (plan.reduce)
    out.collective(kGather, "broadcast " + std::to_string(g), Func::broadcast, kGatherers,
                   plan.gradients, plan.groups[g].numel);
  else
    out.collective(kGather, "all-gather " + std::to_string(g), Func::all_gather, kGatherers,
                   plan.gradients, plan.padded(g) / plan.ranks);
}

// Only modules with parameters wait for a gather, or have gradients to scatter.
void forward(ProgramBuilder& out, const DearPlan& plan, bool gathers, std::uint32_t gathered) {
  out.compute(kCompute, "before the forward", plan.before_forward);
  std::size_t g = 0;  // the next group
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    const Module& module = plan.modules[m];
    if (gathers && m == plan.front(g)) {
      if (g == 0)
        out.wait_previous(kCompute, gathered);
      else
        out.after(kCompute, kGather);
      if (++g < plan.groups.size()) {
        out.after(kGather, kCompute);
        second_half(out, plan, g);
      }
    }
    if (gathers) out.compute(kCompute, "step " + module.name, module.optimizer);
    out.compute(kCompute, "forward " + module.name, module.forward);
  }
}

void backward(ProgramBuilder& out, const DearPlan& plan) {
  std::size_t g = plan.groups.size();  // groups before it are to be scattered
  for (std::size_t m = plan.modules.size(); m-- > 0;) {
    out.compute(kCompute, "backward " + plan.modules[m].name, plan.modules[m].backward);
    if (g == 0 || m != plan.front(g - 1)) continue;
    out.after(kScatter, kCompute);
    first_half(out, plan, --g);
  }
}

Program iteration(const DearPlan& plan, bool gathers) {
  ProgramBuilder out({"compute", "reduce_scatter", "all_gather"});
  out.outlives(kGather);
  const std::uint32_t gathered = out.carried_event();
  forward(out, plan, gathers, gathered);
  backward(out, plan);
  out.after(kGather, kScatter);
  out.after(kGather, kCompute);
  second_half(out, plan, 0);
  out.record(kGather, gathered);
  return out.take();
}

}  // namespace

Workload plan_dear(const JobSpec& spec) {
  check_data_parallel(spec);
  DearPlan plan{modules_of(*spec.model, step_times(spec)),
                {},
                spec.model->before_forward,
                spec.precision.gradients,
                static_cast<std::uint64_t>(spec.cluster.gpus()),
                spec.parallel.decouple_reduce};
  plan.modules.front().forward -= plan.before_forward;  // played before it
  plan.groups = groups_of(spec, plan.modules);
  Workload workload =
      data_parallel_workload(spec, {"dear", {iteration(plan, false), iteration(plan, true)}});
  workload.group_names.emplace_back("dp.gather");
  workload.groups.push_back({kGatherers, workload.groups.front().members});
  return workload;
}

}  // namespace ghostrank
