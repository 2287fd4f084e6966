#include "profiles/planners/megatron/groups.h"

#include <algorithm>
#include <sstream>

#include "profiles/error.h"
#include "profiles/planners/shared/rank_grid.h"

namespace ghostrank {
namespace {

// The dimensions `known`, in the job's order.
RankGrid grid_of(const MegatronPlan& plan, const std::vector<Dimension>& known) {
  const JobSpec& spec = *plan.spec;
  std::vector<Dimension> order;
  std::istringstream names(spec.parallel.order);
  const auto refuse = [&](const std::string& what) {
    throw Error(spec.source_of("parallel.order") + ": parallel.order is '" + spec.parallel.order +
                "'; " + what + ", as in tp-cp-ep-dp-pp");
  };
  for (std::string name; std::getline(names, name, '-');) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&](const Dimension& d) { return d.name == name; });
    if (at == known.end()) refuse("it has an unknown dimension; write tp, cp, ep, dp and pp");
    for (const Dimension& d : order)
      if (d.name == name) refuse(name + " stands there twice; name each dimension once");
    order.push_back(*at);
  }
  for (const Dimension& d : known) {
    const bool named = std::any_of(order.begin(), order.end(),
                                   [&](const Dimension& o) { return o.name == d.name; });
    if (!named && d.size > 1)
      refuse(d.name + " has " + std::to_string(d.size) + " ranks and is missing; add it");
  }
  return RankGrid(std::move(order));
}

std::uint16_t add(Workload& workload, const std::string& name,
                  std::vector<std::vector<WorldRank>> groups) {
  if (groups.empty() || groups.front().size() == 1) return kNoGroup;
  const auto kind = static_cast<std::uint16_t>(workload.group_names.size());
  workload.group_names.push_back(name);
  for (std::vector<WorldRank>& members : groups)
    workload.groups.push_back({kind, std::move(members)});
  return kind;
}

// The groups of ranks that hold the same parameters: if two stages hold every part, a group has the
// ranks of both.
std::vector<std::vector<WorldRank>> holders(const MegatronPlan& plan, const RankGrid& grid,
                                            std::vector<std::vector<WorldRank>> groups) {
  if (!plan.pipeline.is_bidirectional()) return groups;
  std::vector<std::vector<WorldRank>> out;
  for (std::vector<WorldRank>& members : groups) {
    if (grid.coordinate(members.front(), "pp") >= plan.pp / 2) continue;
    const std::size_t half = members.size();
    for (std::size_t i = 0; i < half; ++i) members.push_back(grid.mirrored(members[i], "pp"));
    out.push_back(std::move(members));
  }
  return out;
}

// Node groups and rails of the ep groups. Every node must have equally many members of a group.
void add_node_groups(const MegatronPlan& plan, const std::vector<std::vector<WorldRank>>& groups,
                     Workload& workload, MegatronGroups& out) {
  const int per_node = plan.spec->cluster.gpus_per_node;
  std::vector<std::vector<WorldRank>> rails, nodes;
  for (const std::vector<WorldRank>& members : groups) {
    std::vector<std::vector<WorldRank>> own;
    for (const WorldRank rank : members) {
      if (own.empty() || own.back().front().value() / per_node != rank.value() / per_node)
        own.emplace_back();
      own.back().push_back(rank);
    }
    out.ep_nodes = static_cast<int>(own.size());
    const std::size_t each = members.size() / own.size();
    for (const std::vector<WorldRank>& node : own)
      if (node.size() != each || own.size() != groups.front().size() / each)
        throw Error(plan.spec->source_of("parallel.expert_dispatch") +
                    ": parallel.expert_dispatch: deduplicated needs as many neighbours of an ep " +
                    "group on each of its nodes; use an ep that nodes of " +
                    std::to_string(per_node) + " GPUs divide, or alltoall");
    for (std::size_t local = 0; local < each; ++local) {
      rails.emplace_back();
      for (const std::vector<WorldRank>& node : own) rails.back().push_back(node[local]);
    }
    nodes.insert(nodes.end(), own.begin(), own.end());
  }
  out.ep_rail = add(workload, "ep.rail", std::move(rails));
  out.ep_node = add(workload, "ep.node", std::move(nodes));
}

void add_expert_groups(const MegatronPlan& plan, const RankGrid& dense, Workload& workload,
                       MegatronGroups& out) {
  const RankGrid grid = grid_of(
      plan,
      {{"tp", plan.etp}, {"cp", 1}, {"ep", plan.ep}, {"dp", plan.expert_dp()}, {"pp", plan.pp}});
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    if (grid.coordinate(rank, "pp") != dense.coordinate(rank, "pp"))
      throw Error(plan.spec->source_of("parallel.order") + ": order " + plan.spec->parallel.order +
                  " puts experts on other stages than their layers; name pp last");
  if (plan.is_uneven())
    for (const WorldRank rank : each<WorldRank>(workload.ranks)) {
      std::uint16_t& role = workload.role_of[rank];
      role = static_cast<std::uint16_t>(role * plan.ep + grid.coordinate(rank, "ep"));
    }
  out.ep = add(workload, "ep", grid.groups({"ep"}));
  if (plan.spec->parallel.deduplicated && plan.ep > 1)
    add_node_groups(plan, grid.groups({"ep"}), workload, out);
  out.etp = add(workload, "etp", grid.groups({"tp"}));
  out.tp_ep = add(workload, "tp_ep", grid.groups({"tp", "ep"}));
  out.edp = add(workload, "edp", holders(plan, grid, grid.groups({"dp"})));
  if (plan.model.experts.router_bias)
    out.replicas =
        add(workload, "replicas", holders(plan, dense, dense.groups({"tp", "cp", "dp"})));
  if (!plan.spec->parallel.distributed_optimizer)
    out.expert_norm = add(workload, "expert_mp", grid.groups({"tp", "ep", "pp"}));
}

}  // namespace

MegatronGroups megatron_groups(const MegatronPlan& plan, Workload& workload) {
  const RankGrid grid = grid_of(
      plan, {{"tp", plan.tp}, {"cp", plan.cp}, {"ep", 1}, {"dp", plan.dp}, {"pp", plan.pp}});
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    workload.role_of.push_back(static_cast<std::uint16_t>(grid.coordinate(rank, "pp")));

  MegatronGroups out;
  out.tp = add(workload, "tp", grid.groups({"tp"}));
  out.cp = add(workload, "cp", grid.groups({"cp"}));
  if (plan.spec->parallel.cp_comm == ContextComm::hierarchical) {
    const std::size_t inner = plan.spec->parallel.cp_a2a;
    std::vector<std::vector<WorldRank>> neighbours, rings;
    for (const std::vector<WorldRank>& members : grid.groups({"cp"})) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (i % inner == 0) neighbours.emplace_back();
        neighbours.back().push_back(members[i]);
      }
      for (std::size_t first = 0; first < inner; ++first) {
        rings.emplace_back();
        for (std::size_t i = first; i < members.size(); i += inner)
          rings.back().push_back(members[i]);
      }
    }
    out.cp_a2a = add(workload, "cp.a2a", std::move(neighbours));
    out.cp_p2p = add(workload, "cp.p2p", std::move(rings));
  }
  out.dp = add(workload, "dp", holders(plan, grid, grid.groups({"dp", "cp"})));
  out.forward = add(workload, "pp.forward", grid.groups({"pp"}));
  out.backward = add(workload, "pp.backward", grid.groups({"pp"}));
  if (plan.fp8() && plan.fp8()->recipe == Fp8Recipe::delayed)
    out.amax =
        add(workload, "amax",
            plan.fp8()->tp_only_amax ? grid.groups({"tp", "cp"}) : grid.groups({"tp", "cp", "dp"}));
  if (plan.model.experts.count > 0) add_expert_groups(plan, grid, workload, out);
  if ((plan.model.tied && !plan.ends_meet()) || plan.has_embedding_copy()) {
    const int other =
        plan.has_embedding_copy() ? plan.pipeline.stage_of(plan.mtp_part()) : plan.pp - 1;
    std::vector<std::vector<WorldRank>> ends;
    for (const std::vector<WorldRank>& stages : grid.groups({"pp"}))
      ends.push_back({stages.front(), stages.at(other)});
    out.embedding = add(workload, "embedding", std::move(ends));
  }
  out.norm = plan.spec->parallel.distributed_optimizer
                 ? add(workload, "world", grid.groups({"tp", "cp", "ep", "dp", "pp"}))
                 : add(workload, "mp", grid.groups({"tp", "pp"}));
  return out;
}

}  // namespace ghostrank
