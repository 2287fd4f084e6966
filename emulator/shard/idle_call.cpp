#include "emulator/shard/idle_call.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <span>

#include "collectives/routing.h"
#include "emulator/fabric/local.h"
#include "emulator/shard/shard.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

// The machines and the library of the group's job, with as many nodes as the group has, and nothing
// but the network.
JobSpec lone_job(const JobSpec& spec, const JobSpec& own, int nodes) {
  JobSpec lone = spec;
  lone.slice.clear();
  lone.collectives = own.collectives;
  lone.device = own.device;
  lone.cluster.nodes = nodes;
  lone.cluster.node_of_block.clear();
  lone.jobs.clear();
  lone.cluster.storage_nodes = 0;
  lone.cluster.servers = {};
  lone.cluster.topology = {};
  lone.cluster.nic_rates = nullptr;
  lone.fabric.kind = FabricKind::virtual_time;
  lone.fabric.network = NetworkModel::loggp;
  lone.fabric.queue_pairs = {};  // chains stand for them
  lone.placement = {};
  lone.hosts.clear();
  lone.background.clear();
  lone.events = nullptr;
  lone.run.verify = false;
  lone.run.jitter = 0;
  lone.run.shards = 1;
  return lone;
}

// The leaves of the members' nodes and, between two of them, the links of the way as chains that
// nothing else takes. The first link of a chain has its rate. `moved`: the group's members on their
// own nodes.
TopologySpec idle_links(const JobSpec& spec, const Topology& topology,
                        const std::vector<IdleWay>& ways, int nodes,
                        const std::vector<WorldRank>& members,
                        const std::vector<WorldRank>& moved) {
  SwitchGraph graph;
  graph.connected = false;                        // no messages pass between other leaves
  std::map<std::uint32_t, std::uint32_t> leaves;  // by the number in the job
  const int nics = spec.cluster.nics_per_node;
  graph.leaf_of.resize(nodes * nics);
  for (std::size_t i = 0; i < members.size(); ++i)
    for (int n = 0; n < nics; ++n) {
      const std::uint32_t in_job =
          topology.leaf_of(Nic(spec.cluster.node_of(members[i]).value() * nics + n));
      const auto leaf = leaves.try_emplace(in_job, static_cast<std::uint32_t>(leaves.size()));
      graph.leaf_of[Nic(moved[i].value() / spec.cluster.gpus_per_node * nics + n)] =
          leaf.first->second;
    }
  const auto add_switch = [&] {
    graph.switches.push_back({std::to_string(graph.switches.size()), Node(0)});
    return static_cast<std::uint32_t>(graph.switches.size() - 1);
  };
  while (graph.switches.size() < leaves.size()) add_switch();
  graph.leaves = static_cast<std::uint32_t>(leaves.size());
  for (const Nic nic : graph.leaf_of.keys()) ++graph.switches[graph.leaf_of[nic]].nics;
  // Without latency one link will do. Routes from every leaf take memory for every switch, so that
  // the switches of an all-to-all's chains would be too many.
  const bool whole = spec.cluster.topology.link_latency > 0;
  bool sprays = false;
  for (const IdleWay& way : ways) {
    const int links = whole ? way.links : 1;
    for (std::uint32_t chain = 0; chain < way.chains; ++chain) {
      std::uint32_t at = leaves.at(way.a);
      for (int link = 0; link < links; ++link) {
        const std::uint32_t to = link + 1 == links ? leaves.at(way.b) : add_switch();
        graph.cables.push_back({at, to, link == 0 ? way.bps : 0});
        at = to;
      }
    }
    sprays |= way.chains > 1;
    graph.longest = std::max(graph.longest, links);
  }
  graph.tiers = {{"up", "down", 0, static_cast<std::uint32_t>(graph.cables.size())}};
  TopologySpec out;
  out.kind = TopologySpec::Kind::file;
  out.link_latency = spec.cluster.topology.link_latency;
  if (sprays) {
    const std::span<const Routing> rows = routings();
    out.routing = topology.routes_per() == Routing::Per::message
                      ? spec.cluster.topology.routing
                      : &*std::find_if(rows.begin(), rows.end(), [](const Routing& row) {
                          return row.per == Routing::Per::message;
                        });
  }
  out.file = std::make_shared<const SwitchGraph>(std::move(graph));
  return out;
}

// Calls of the workload as one launch of `lone`, to which their counts are added.
OpList launch_of(std::vector<Op> calls, Workload& lone, const Workload& workload) {
  for (Op& call : calls) {
    call.label = call.tensor = call.launch = 0;
    call.launch_index = 0;
    if (!is_ragged(call.func)) continue;
    lone.counts.push_back(workload.counts[call.counts]);
    call.counts = static_cast<std::uint32_t>(lone.counts.size() - 1);
  }
  make_launch(calls, lone.launches);
  OpList out;
  for (const Op& call : calls) out.push_back(call);
  return out;
}

Role role_of(const std::string& name, const OpList& ops) {
  return {name, {Program{{"call"}, {ops}, {"call"}, 0, {}, {}}}};
}

Op end_of_transfer(const Op& op, Op::Kind kind, GroupRank peer) {
  Op end = op;
  end.label = end.tensor = end.launch = 0;
  end.launch_index = 0;
  end.kind = kind;
  end.peer = peer;
  return end;
}

// The calls alone, in each of the groups, or the message from source to target that the first call
// stands for. Members are on the GPUs that they have, on nodes numbered from 0; ranks keep their
// order, in which messages pass that arrive at one time.
Workload lone_workload(const JobSpec& spec, const Workload& workload,
                       const std::vector<Group>& groups, const std::vector<Op>& calls,
                       GroupRank source, GroupRank target) {
  const int gpus = spec.cluster.gpus_per_node;
  Workload lone;
  for (std::uint16_t kind = 0; kind < workload.group_names.size(); ++kind)
    lone.group_names.push_back(own_name(workload, kind));
  lone.services = workload.services;
  std::map<int, int> node;  // by the number that it has in the job
  for (const Group& group : groups)
    for (const WorldRank rank : group.members) node[rank.value() / gpus] = 0;
  int nodes = 0;
  for (auto& [own, number] : node) number = nodes++;
  for (const Group& group : groups) {
    Group moved{group.kind, {}};
    for (const WorldRank rank : group.members)
      moved.members.push_back(WorldRank(node.at(rank.value() / gpus) * gpus + rank.value() % gpus));
    lone.groups.push_back(std::move(moved));
  }
  lone.ranks = nodes * gpus;
  lone.role_of.assign(lone.ranks, std::uint16_t{0});
  lone.roles.push_back(role_of("others", {}));
  if (source == kNoRank) {
    lone.roles.push_back(role_of("members", launch_of(calls, lone, workload)));
    for (const Group& moved : lone.groups)
      for (const WorldRank rank : moved.members) lone.role_of[rank] = 1;
  } else {
    const Op& op = calls.front();
    lone.roles.push_back(role_of("sender", {end_of_transfer(op, Op::Kind::send, target - source)}));
    lone.roles.push_back(
        role_of("receiver", {end_of_transfer(op, Op::Kind::recv, source - target)}));
    for (const Group& moved : lone.groups) {
      lone.role_of[moved.members[source]] = 1;
      lone.role_of[moved.members[target]] = 2;
    }
  }
  return lone;
}

// Plays the job, and returns when each member of its first group has ended its calls.
IdleCall play(const JobSpec& job, const Workload& lone) {
  const Cluster cluster(job, lone, 1);
  const Flows flows(job, lone, cluster);
  const std::unique_ptr<Fabric> fabric = make_local_fabric();
  std::map<WorldRank, GroupRank> position;
  for (const Group& one : lone.groups)
    for (GroupRank i = 0; i < std::ssize(one.members); ++i) position[one.members[i]] = i;
  std::vector<WorldRank> members;
  for (const auto& [rank, at] : position) members.push_back(rank);
  Shard shard({.spec = job,
               .workload = lone,
               .cluster = cluster,
               .flows = flows,
               .fabric = *fabric,
               .trace_ranks = members,
               // Without a limit: a member has a span for each call of a launch, and some for the
               // stages of a scheme, and a span left out would make the call look shorter.
               .max_spans = std::numeric_limits<std::size_t>::max()});
  ShardShared shared(1);
  shared.fabrics.push_back(fabric.get());
  shard.prepare({}, shared);
  shard.play(Clock::virtual_time());
  if (!shared.failure.empty()) throw Error("a call alone failed: " + shared.failure);
  IdleCall idle{0, std::vector<Picoseconds>(lone.groups[0].members.size())};
  for (const Span& span : shard.take_spans()) {
    const Picoseconds end = span.start + span.duration;
    Picoseconds& last = idle.end[position.at(span.rank)];
    last = std::max(last, end);
    idle.duration = std::max(idle.duration, end);
  }
  return idle;
}

}  // namespace

IdleCall play_alone(const JobSpec& spec, const Workload& workload, std::uint32_t group,
                    const Op& op, GroupRank source, GroupRank target, const Topology* topology,
                    const std::vector<IdleWay>& ways, const std::vector<std::uint32_t>& beside) {
  const bool transfer = source != kNoRank;
  std::vector<Group> groups{workload.groups[group]};
  const JobSpec& own = settings_of(spec, workload, op.group);
  if (transfer && beside.empty() && is_direct(spec, workload, op.group)) {
    std::vector<WorldRank>& members = groups[0].members;
    members = {members[std::min(source, target)], members[std::max(source, target)]};
    source = source < target ? 0 : 1;
    target = 1 - source;
  }
  const std::vector<WorldRank> members = groups[0].members;
  for (const std::uint32_t g : beside) groups.push_back(workload.groups[g]);
  const std::vector<Op> calls = transfer ? std::vector<Op>{op} : calls_with(workload, op);
  const Workload lone = lone_workload(spec, workload, groups, calls, source, target);
  const int nodes = lone.ranks / spec.cluster.gpus_per_node;
  JobSpec job = lone_job(spec, own, nodes);
  if (topology)
    job.cluster.topology =
        idle_links(spec, *topology, ways, nodes, members, lone.groups[0].members);
  IdleCall idle = play(job, lone);
  if (transfer) idle.end = {idle.end[source], idle.end[target]};
  return idle;
}

Picoseconds play_in_node(const JobSpec& spec, const Workload& workload, std::uint32_t group,
                         const std::vector<Op>& calls, Picoseconds latency) {
  const Workload lone =
      lone_workload(spec, workload, {workload.groups[group]}, calls, kNoRank, kNoRank);
  JobSpec job = lone_job(spec, settings_of(spec, workload, calls.front().group), 1);
  job.fabric.inside_node = InsideNode::messages;
  job.cluster.intra_node.latency = latency;
  return play(job, lone).duration;
}

}  // namespace ghostrank
