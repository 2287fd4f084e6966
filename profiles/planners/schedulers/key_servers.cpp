#include "profiles/planners/schedulers/key_servers.h"

#include <string>
#include <vector>

#include "profiles/planners/schedulers/modules.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

Program iteration(const JobSpec& spec, const std::vector<Module>& modules, Picoseconds optimizer) {
  ProgramBuilder out({"compute", "comm"});
  out.at_once(kComm, kMaxAtOnce);
  std::size_t declared = 0;  // tensors of the modules before
  for (const Module& module : modules) {
    out.compute(kCompute, "forward " + module.name, module.forward);
    declared += module.tensors.size();
  }
  const auto reduce = [&](const Module& module) {
    declared -= module.tensors.size();
    for (std::size_t t = module.tensors.size(); t-- > 0;)
      out.collective(kComm, module.name + " " + std::to_string(t), Func::all_reduce, kDataParallel,
                     spec.precision.gradients, module.tensors[t], 0, declared + t + 1);
  };
  const bool overlaps = spec.parallel.launch == Launch::overlap;
  for (std::size_t m = modules.size(); m-- > 0;) {
    out.compute(kCompute, "backward " + modules[m].name, modules[m].backward);
    if (!overlaps) continue;
    out.after(kComm, kCompute);
    reduce(modules[m]);
  }
  if (!overlaps) {
    out.after(kComm, kCompute);
    for (std::size_t m = modules.size(); m-- > 0;) reduce(modules[m]);
  }
  out.after(kCompute, kComm);
  out.compute(kCompute, "optimizer", optimizer);
  return out.take();
}

}  // namespace

Workload plan_key_servers(const JobSpec& spec) {
  check_data_parallel(spec);
  const StepTimes times = step_times(spec);
  const bool on_gpu = spec.parallel.framework == Framework::byteps;
  const Program program = iteration(spec, modules_of(*spec.model, times),
                                    on_gpu ? times.optimizer : spec.model->before_optimizer);
  return data_parallel_workload(spec, {std::string(name_of(spec.parallel.framework)), {program}});
}

}  // namespace ghostrank
