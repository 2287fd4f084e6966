// From a job to what its ranks do: one planner per framework.
#include "profiles/ddp.h"
#include "profiles/error.h"
#include "profiles/job.h"
#include "profiles/megatron.h"

namespace ghostrank {

Workload plan_workload(const JobSpec& spec) {
  if (!spec.model) throw Error(spec.file + ": the job has no model; add model: NAME");
  if (spec.parallel.framework == "ddp") return plan_ddp(spec);
  if (spec.parallel.framework == "megatron") return plan_megatron(spec);
  throw Error(spec.place("parallel.framework") + ": parallel.framework: " +
              spec.parallel.framework + " is not available yet; use ddp or megatron");
}

}  // namespace ghostrank
