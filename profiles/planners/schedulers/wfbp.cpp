#include "profiles/planners/schedulers/wfbp.h"

#include <string>
#include <vector>

#include "profiles/planners/schedulers/fusion.h"
#include "profiles/planners/schedulers/modules.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

std::vector<FusedGroup> calls_of(const JobSpec& spec, const std::vector<ReadyTensor>& tensors) {
  if (spec.parallel.framework == Framework::mgwfbp)
    return merge_calls(tensors, bytes_of(spec.precision.gradients), assumed_cost(spec));
  std::vector<FusedGroup> out;
  for (std::size_t t = 0; t < tensors.size(); ++t) out.push_back({t, t + 1, tensors[t].numel});
  return out;
}

}  // namespace

Workload plan_wfbp(const JobSpec& spec) {
  check_data_parallel(spec);
  const StepTimes times = step_times(spec);
  const std::vector<Module> modules = modules_of(*spec.model, times);
  const std::vector<ReadyTensor> tensors = tensors_of(modules);
  const std::vector<FusedGroup> calls = calls_of(spec, tensors);

  ProgramBuilder out({"compute", "comm"});
  for (const Module& module : modules)
    out.compute(kCompute, "forward " + module.name, module.forward);
  std::size_t call = calls.size();
  for (std::size_t m = modules.size(); m-- > 0;) {
    out.compute(kCompute, "backward " + modules[m].name, modules[m].backward);
    for (; call > 0 && tensors[calls[call - 1].first].module == m; --call) {
      out.after(kComm, kCompute);
      out.collective(kComm, "gradients " + std::to_string(call - 1), Func::all_reduce,
                     kDataParallel, spec.precision.gradients, calls[call - 1].numel, 0, call);
    }
  }
  out.after(kCompute, kComm);
  out.compute(kCompute, "optimizer", times.optimizer);
  return data_parallel_workload(spec,
                                {std::string(name_of(spec.parallel.framework)), {out.take()}});
}

}  // namespace ghostrank
