#include "profiles/planners/background/background.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "profiles/error.h"
#include "profiles/planners/background/pairs.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/planners/background/programs.h"
#include "profiles/planners/background/steps.h"
#include "profiles/workload/program_builder.h"
#include "profiles/workload/workload_check.h"

namespace ghostrank {
namespace {

// How long the bytes of a step take at the background's rate; 0: no rate limits them.
Picoseconds paced(const Background& background) {
  if (background.rate_bps == 0) return 0;
  const double bytes = std::ceil(static_cast<double>(background.bytes) / background.over);
  check_rate(background, bytes);
  return static_cast<Picoseconds>(bytes * 8 / background.rate_bps * kPicosPerSecond);
}

// Refuses background of only some steps where a controller of ratios repeats one step.
void check_every_step(const JobSpec& spec) {
  if (!spec.compression || !spec.compression->adapts) return;
  for (const Background& background : spec.background)
    if (background.every > 1)
      throw Error(background.source + ": every is " + std::to_string(background.every) +
                  ", and with compression.budget_ms all steps are alike; leave every out, or "
                  "compression.budget_ms");
}

}  // namespace

Workload plan_background(const JobSpec& spec) {
  Picoseconds step = kStepBesideJobs;
  for (const Background& background : spec.background) step = std::max(step, paced(background));
  ProgramBuilder out({"compute"});
  out.compute(0, "step", step);
  Workload workload;
  workload.ranks = spec.cluster.gpus();
  workload.role_of = VectorBy<WorldRank, std::uint16_t>(workload.ranks, 0);
  workload.roles.push_back({"traffic", {out.take()}});
  add_background(spec, workload);
  check_workload(workload);
  return workload;
}

void add_background(const JobSpec& spec, Workload& workload) {
  const int storage = spec.cluster.storage_nodes;
  const auto stores = [](const Background& background) { return is_stored(background.pattern); };
  const auto stored = std::find_if(spec.background.begin(), spec.background.end(), stores);
  if (stored == spec.background.end() && storage > 0)
    throw Error(spec.source_of("cluster.storage_nodes") + ": cluster.storage_nodes is " +
                std::to_string(storage) + " but nothing is stored; add background, as in " +
                "[{pattern: checkpoint, every: 100}], or leave it out");
  if (spec.background.empty()) return;
  if (stored != spec.background.end() && storage == 0)
    throw Error(stored->source +
                ": background goes to storage nodes and the cluster has none; add them, as in "
                "cluster.storage_nodes=1");
  for (const Background& background : spec.background)
    if (!stores(background)) check_pattern(spec, background);
  check_every_step(spec);
  const std::vector<StepVariant> variants = order_variants(spec, workload);
  workload.servers = storage * spec.cluster.gpus_per_node;
  workload.ranks += workload.servers;
  add_to_roles(spec, workload, make_services(spec, workload), variants);
}

}  // namespace ghostrank
