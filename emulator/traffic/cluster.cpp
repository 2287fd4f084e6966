#include "emulator/traffic/cluster.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "collectives/server_placement.h"
#include "emulator/host/host_facts.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

// The most threads that `run.shards: auto` takes: with each more, a thread has less work and hands
// over more messages.
constexpr int kMostByAuto = 4;

}  // namespace

std::vector<int> host_of_nodes(const JobSpec& spec, int processes) {
  if (processes > 1 && !spec.placement.host_of_node.empty()) return spec.placement.host_of_node;
  const int nodes = spec.cluster.all_nodes();
  std::vector<int> host(static_cast<std::size_t>(nodes));
  for (int n = 0; n < nodes; ++n) {
    const auto blocked = static_cast<int>(static_cast<std::int64_t>(n) * processes / nodes);
    host[static_cast<std::size_t>(n)] = spec.placement.cyclic ? n % processes : blocked;
  }
  return host;
}

int usable_shards(const JobSpec& spec, int hosts) {
  if (spec.fabric.kind == FabricKind::virtual_time && Topology(spec).lookahead() <= 0) return 1;
  const bool alone = spec.fabric.kind == FabricKind::memory && hosts == 1;
  const int wanted = spec.run.shards > 0 ? spec.run.shards
                     : alone             ? std::min(usable_cores(), kMostByAuto)
                                         : 1;
  std::vector<int> nodes(static_cast<std::size_t>(hosts));
  for (const int host : host_of_nodes(spec, hosts)) ++nodes[static_cast<std::size_t>(host)];
  return std::max(1, std::min(wanted, *std::min_element(nodes.begin(), nodes.end())));
}

Cluster::Cluster(const JobSpec& spec, const Workload& workload, int hosts)
    : workload_(workload),
      topology_(spec),
      hosts_(hosts),
      shards_(usable_shards(spec, hosts)),
      nics_(spec.cluster.all_nodes() * spec.cluster.nics_per_node),
      nics_per_node_(spec.cluster.nics_per_node),
      kinds_(workload.group_names.size()),
      host_of_node_(host_of_nodes(spec, hosts)) {
  std::vector<int> nodes_on(static_cast<std::size_t>(hosts));
  for (const int host : host_of_node_)  // number of each node among the nodes of its host
    shard_of_node_.push_back(nodes_on[static_cast<std::size_t>(host)]++);
  for (std::size_t n = 0; n < shard_of_node_.size(); ++n)
    shard_of_node_[n] =
        static_cast<std::int32_t>(static_cast<std::int64_t>(shard_of_node_[n]) * shards_ /
                                  nodes_on[static_cast<std::size_t>(host_of_node_[n])]);

  for (std::uint32_t link = 0; link < topology_.links(); ++link)
    shard_of_link_.push_back(
        shard_of_node_[static_cast<std::size_t>(topology_.node_of_link(link))]);
  ranks_.resize(static_cast<std::size_t>(hosts * shards_));
  helpers_.resize(ranks_.size());
  const int gpus = spec.cluster.gpus_per_node;
  for (Rank rank = 0; rank < workload.ranks; ++rank) {
    Location p;
    p.node = rank / gpus;
    const auto node = static_cast<std::size_t>(p.node);
    p.nic = p.node * spec.cluster.nics_per_node + rank % gpus * spec.cluster.nics_per_node / gpus;
    p.host = host_of_node_[node];
    p.shard = shard_of_node_[node];
    auto& mates = ranks_[static_cast<std::size_t>(p.host * shards_ + p.shard)];
    p.local = static_cast<std::int32_t>(mates.size());
    mates.push_back(rank);
    locations_.push_back(p);
  }

  memberships_.resize(locations_.size() * kinds_);
  std::map<std::vector<std::int32_t>, std::uint32_t> known;  // nodes, NICs -> layout
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    const Group& group = workload.groups[g];
    GroupLayout layout;
    std::map<int, std::int32_t> number;
    std::map<int, std::set<int>> nics;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const Rank rank = group.members[i];
      memberships_[static_cast<std::size_t>(rank) * kinds_ + group.kind] = {
          static_cast<std::int32_t>(g), static_cast<Rank>(i)};
      const Location& p = location(rank);
      layout.nodes.push_back(number.try_emplace(p.node, number.size()).first->second);
      nics[p.node].insert(p.nic);
    }
    for (const auto& [node, used] : nics)
      layout.nics = std::max(layout.nics, static_cast<int>(used.size()));
    layout.one_node = number.size() == 1;
    if (layout.one_node) layout.nics = 1;  // its messages never leave the node
    std::vector<std::int32_t> key = layout.nodes;
    key.push_back(layout.nics);
    const auto [it, fresh] =
        known.try_emplace(std::move(key), static_cast<std::uint32_t>(layouts_.size()));
    if (fresh) layouts_.push_back(std::move(layout));
    layout_of_.push_back(it->second);
  }
  add_schemes(spec);
}

PartyKind Cluster::kind(Rank party) const {
  if (party < workload_.ranks) return PartyKind::rank;
  for (const SchemeUse& use : schemes_) {
    const auto helper = static_cast<std::size_t>(party - use.first_helper);
    if (party >= use.first_helper && helper < use.helpers.size()) return use.helpers[helper].kind;
  }
  return PartyKind::server;
}

int Cluster::scheme(std::uint32_t group, const Algorithm& row) const {
  if (!row.ends) return -1;
  const auto found = scheme_of_.find({group, row.name});
  return found == scheme_of_.end() ? -1 : found->second;
}

// Adds a scheme for every group in which some program plays a collective with a row of agents.
void Cluster::add_schemes(const JobSpec& spec) {
  std::set<std::pair<std::uint16_t, Func>> used;
  for (const Role& role : workload_.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream)
          if (op.kind == Op::Kind::collective) used.insert({op.group, op.func});
  for (const auto& [kind, func] : used) {
    if (is_service(workload_, kind)) continue;
    const Algorithm* row = spec.collectives.row(func, workload_.group_names[kind]);
    if (!row || !row->ends) continue;
    for (std::uint32_t g = 0; g < workload_.groups.size(); ++g)
      if (workload_.groups[g].kind == kind && !scheme_of_.contains({g, row->name}))
        add_scheme(spec, g, *row);
  }
}

void Cluster::add_scheme(const JobSpec& spec, std::uint32_t group, const Algorithm& row) {
  const auto refuse = [&](const std::string& why) {
    throw Error("collectives: " + std::string(row.library) + "/" + std::string(row.name) + " " +
                why);
  };
  SchemeUse use{group, row.library, row.name, nullptr, {}, parties()};
  Communicator comm;
  comm.node_of = nodes_of_layout(layout(group));
  comm.in_switch = spec.collectives.in_switch;
  const auto size = static_cast<int>(members_of(group).size());
  try {
    use.ends = row.ends(size, comm);
  } catch (const std::invalid_argument& error) {
    refuse(std::string("cannot serve a group of ") + std::to_string(size) + ": " + error.what());
  }
  if (!use.ends || use.ends->size() != size) refuse("gives no ends for its communicator");
  use.helpers = use.ends->helpers();
  for (std::size_t i = 0; i < use.helpers.size(); ++i) {
    // On a real network a server plays the switch.
    const bool in_network = use.helpers[i].kind == PartyKind::network_switch &&
                            use.helpers[i].beside == kNoRank && !is_network(spec.fabric.kind);
    if (!in_network && use.helpers[i].beside == kNoRank && spec.cluster.servers.count == 0)
      refuse("needs " + std::to_string(use.helpers.size()) + " helpers (" +
             std::string(name_of(use.helpers[i].kind)) +
             ") for each communicator, and the job has no servers; add  servers: {count: 1}");
    Location location = in_network ? add_switch(use) : helper_location(spec, use, i);
    const auto owner = static_cast<std::size_t>(location.host * shards_ + location.shard);
    location.local = static_cast<std::int32_t>(ranks_[owner].size() + helpers_[owner].size());
    helpers_[owner].push_back(parties());
    locations_.push_back(location);
  }
  scheme_of_[{group, row.name}] = static_cast<int>(schemes_.size());
  schemes_.push_back(std::move(use));
}

// The switch's place: near the communicator's first rank, whose shard plays it.
Location Cluster::add_switch(const SchemeUse& use) {
  Location location = this->location(members_of(use.group).front());
  location.nic = topology_.add_switch(location.nic);
  location.node = location.nic / nics_per_node_;
  nics_ = location.nic + nics_per_node_;
  return location;
}

// The helper's place: with the rank that it is beside, else where the job's placement of servers
// puts it.
Location Cluster::helper_location(const JobSpec& spec, const SchemeUse& use,
                                  std::size_t helper) const {
  const Rank beside = use.helpers[helper].beside;
  Location location;
  if (beside != kNoRank) {
    location = this->location(members_of(use.group).at(static_cast<std::size_t>(beside)));
  } else {
    const ServerSpec& servers = spec.cluster.servers;
    const auto built_in = server_placements().subspan(servers.colocated ? 1 : 0);
    const ServerPlacement& row = servers.placement ? *servers.placement : built_in.front();
    const ServerSites sites{spec.cluster.rank_nodes(), nics_per_node_, servers.count, servers.nics};
    std::vector<std::int32_t> nodes;
    for (const Rank rank : members_of(use.group)) nodes.push_back(this->location(rank).node);
    const ServerLocation chosen = row.place(
        {use.helpers[helper].kind, parties() - workload_.ranks, static_cast<int>(helper), nodes},
        sites);
    if (const std::string wrong = why_no_location(chosen, row, sites); !wrong.empty())
      throw Error("servers.placement: " + std::string(row.name) + " " + wrong);
    location.node = chosen.node;
    location.nic = chosen.node * nics_per_node_ + chosen.nic;
  }
  const auto node = static_cast<std::size_t>(location.node);
  location.host = host_of_node_[node];
  location.shard = shard_of_node_[node];
  return location;
}

NicPair nics_of(const Cluster& cluster, const Schedule& schedule, const std::vector<Rank>& members,
                Rank from, Rank to, int channel) {
  const auto pick = [&](Rank member, Way way) {
    const Location& location = cluster.location(members[static_cast<std::size_t>(member)]);
    const int chosen =
        schedule.nics() > 0 ? schedule.nic(from, to, channel, way) : Schedule::kOwnNic;
    if (chosen == Schedule::kOwnNic) return location.nic;
    const int per_node = cluster.nics_per_node();
    return location.node * per_node + chosen * per_node / schedule.nics();
  };
  return {pick(from, Way::send), pick(to, Way::recv)};
}

}  // namespace ghostrank
