#include "emulator/shard/ranks/ahead.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ghostrank {
namespace {

// Whether several streams have collectives of one kind of group.
bool shares_groups(const Program& program, std::size_t kinds) {
  const std::size_t none = program.streams.size();
  std::vector<std::size_t> stream_of(kinds, none);
  for (std::size_t stream = 0; stream < program.streams.size(); ++stream)
    for (const Op& op : program.streams[stream].distinct()) {
      if (op.kind != Op::Kind::collective) continue;
      std::size_t& known = stream_of[op.group];
      if (known != none && known != stream) return true;
      known = stream;
    }
  return false;
}

bool has_queues(const Program& program) {
  return std::any_of(program.at_once.begin(), program.at_once.end(),
                     [](std::uint8_t workers) { return workers > 1; });
}

}  // namespace

bool may_run_ahead(const JobSpec& spec, const Workload& workload, const Cluster& cluster) {
  if (spec.fabric.kind != FabricKind::virtual_time || spec.run.compute_slowdown > 0 ||
      !cluster.schemes().empty() || carries_over(workload))
    return false;
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      if (has_queues(program) || shares_groups(program, workload.group_names.size())) return false;
  return true;
}

}  // namespace ghostrank
