#include "profiles/planners/background/background.h"

#include <algorithm>
#include <string>

#include "profiles/error.h"
#include "profiles/planners/background/pairs.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/planners/background/programs.h"
#include "profiles/planners/background/steps.h"

namespace ghostrank {

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
  const std::vector<StepVariant> variants = order_variants(spec, workload);
  workload.servers = storage * spec.cluster.gpus_per_node;
  workload.ranks += workload.servers;
  add_to_roles(spec, workload, make_services(spec, workload), variants);
}

}  // namespace ghostrank
