// Selects the planner of a job's framework, and checks every plan before anybody plays it.
#include "profiles/planners/plan.h"

#include "profiles/error.h"
#include "profiles/job/job.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/compression/compression.h"
#include "profiles/planners/ddp.h"
#include "profiles/planners/fsdp/fsdp.h"
#include "profiles/planners/fsdp/mesh.h"
#include "profiles/planners/horovod.h"
#include "profiles/planners/kfac/kfac.h"
#include "profiles/planners/megatron/megatron.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/memory_check.h"
#include "profiles/planners/schedulers/bytescheduler.h"
#include "profiles/planners/schedulers/dear.h"
#include "profiles/planners/schedulers/key_servers.h"
#include "profiles/planners/schedulers/wfbp.h"
#include "profiles/planners/tensors.h"
#include "profiles/planners/torchrec.h"
#include "profiles/planners/zero.h"
#include "profiles/workload/merge.h"
#include "profiles/workload/workload_check.h"

namespace ghostrank {
namespace {

Workload plan(const JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  const bool has_tables =
      framework == Framework::torchrec || (framework == Framework::ddp && spec.zipf);
  if (spec.model->recommendation && !spec.model->recommendation->dense_gradients && !has_tables)
    throw Error(spec.source_of("parallel.framework") + ": the tables of " + spec.model->name +
                " have no dense gradients for framework " + std::string(name_of(framework)) +
                "; use parallel.framework=torchrec, or ddp with tensors.embeddings=zipf");
  switch (framework) {
    case Framework::megatron:
      return plan_megatron(spec);
    case Framework::torchrec:
      return plan_torchrec(spec);
    case Framework::fsdp:
    case Framework::torchtitan:
      return plan_fsdp(spec);
    case Framework::zero1:
    case Framework::zero2:
    case Framework::zero3:
      return plan_zero(spec);
    case Framework::horovod:
      return plan_horovod(spec);
    case Framework::dear:
      return plan_dear(spec);
    case Framework::wfbp:
    case Framework::mgwfbp:
      return plan_wfbp(spec);
    case Framework::bytescheduler:
      return plan_bytescheduler(spec);
    case Framework::kfac:
      return plan_kfac(spec);
    case Framework::byteps:
    case Framework::phub:
      return plan_key_servers(spec);
    case Framework::ddp:
      break;
  }
  return plan_ddp(spec);
}

Workload plan_jobs(const JobSpec& spec) {
  std::vector<NamedWorkload> planned;
  for (const JobOnNodes& one : spec.jobs) {
    const bool traffic = has_background_beside(spec) && &one == &spec.jobs.back();
    planned.push_back({one.name, traffic ? plan_background(*one.job) : plan_workload(*one.job)});
  }
  return merge(planned);
}

}  // namespace

std::optional<Pipeline> pipeline_of(const JobSpec& spec) {
  if (spec.program || spec.parallel.pp == 1) return std::nullopt;
  if (spec.parallel.framework == Framework::megatron) return megatron_plan(spec).pipeline;
  if (spec.parallel.framework != Framework::torchtitan) return std::nullopt;
  Workload unused;
  return fsdp_mesh(spec, unused).pipeline;
}

Workload plan_workload(const JobSpec& spec) {
  if (!spec.jobs.empty()) return plan_jobs(spec);
  if (spec.program) {
    check_workload(*spec.program,
                   spec.source_of(spec.sources.contains("trace") ? "trace" : "program"));
    check_tensors(spec, *spec.program);
    check_compressed(spec, *spec.program);
    return *spec.program;
  }
  if (!spec.model) throw Error(spec.file + ": the job has no model; add model: NAME");
  Workload workload = plan(spec);
  check_state_memory(spec);
  compress(spec, workload);
  add_background(spec, workload);
  check_workload(workload);
  check_tensors(spec, workload);
  return workload;
}

}  // namespace ghostrank
