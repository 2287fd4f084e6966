// The plans that a job could have on its cluster, by the step that each takes.
//
// For a Megatron job the search tries every legal split of the model over the GPUs: tensor parallel
// degrees that divide a node, pipeline stages, model chunks of interleaved schedules,
// micro-batches, recomputation, expert parallel degrees of models with experts, context parallel
// degrees where the job has one, and the optimizer's state whole or sharded; data parallel is what
// remains. For TorchTitan it does the same, with uneven stages too, and varies the models that
// the data-parallel ranks hold together instead of the optimizer. For a job that spreads whole
// models over data-parallel ranks (ddp, zero1, zero2, zero3, fsdp) it tries each of these
// frameworks, and for FSDP hybrid shards, `reshard_after_forward` and recomputation. The batch of a
// step and all other keys stay as they are. Plans that need more memory than the device has
// (megatron/memory.h, planners/memory_check.h) are out. The search estimates the others
// (emulator/estimate) in the order of their compute and bubble time alone, until that time exceeds
// the step of the slowest plan kept: the plans left out are slower.
//
// Errors: Error(usage) for jobs of other frameworks, or that fix what is searched for.
// Threading: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "profiles/planners/shared/gpu_memory.h"

namespace ghostrank {

std::string name_of(Recompute recompute);  // as parallel.recompute has it

struct PlanChoice {
  Framework framework = Framework::megatron;
  int tp = 1, pp = 1, cp = 1, ep = 1, interleave = 1, micro_batch = 1;
  Recompute recompute = Recompute::none;
  bool sharded_optimizer = false;   // megatron
  int replicate = 1;                // fsdp, torchtitan: models that the ranks hold together
  std::string reshard = "default";  // fsdp: `reshard_after_forward`
};

struct PlanFound {
  PlanChoice choice;
  int dp = 1;
  std::optional<GpuMemory> memory;    // of the fullest GPU; empty: unknown, as of a measured model
  Picoseconds least = 0;              // compute and bubble alone
  Picoseconds step = 0, compute = 0;  // estimated; compute of the role that computes longest
};

struct PlanSearch {
  std::vector<PlanFound> best;   // by step
  std::optional<PlanFound> own;  // the job's; empty if it is not legal, or cannot be estimated
  std::size_t looked_at = 0, illegal = 0, too_large = 0, left_out = 0, estimated = 0;
};

// The job as it is searched: a key that is given as its default says no more than one that is left
// out, which changes with the framework (but for sizes of buckets beside a captured model's own).
// The job of a result gives all.
JobSpec searched(const LoadedJob& job);

// What can stay as the job has it: "tp", "micro_batch", ...
std::vector<std::string> plan_dimensions();

// The job with the medians of a captured model alone, which are what other frameworks than ddp
// play: one recorded step of ddp's is not to be compared with them.
JobSpec with_medians(JobSpec job);

// The best `keep`; all that fit, if there are no more. `fixed`: dimensions that are not varied. A
// captured model has its medians.
PlanSearch search_plans(const JobSpec& job, std::size_t keep,
                        const std::vector<std::string>& fixed = {});

// The job with this plan, and the settings that make it so: "parallel.tp=8", ...
JobSpec with_choice(const JobSpec& job, const PlanChoice& choice);
std::vector<std::string> settings_of(const JobSpec& job, const PlanChoice& choice);

}  // namespace ghostrank
