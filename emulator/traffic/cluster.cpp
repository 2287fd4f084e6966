#include "emulator/traffic/cluster.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>

#include "emulator/host/host_facts.h"
#include "emulator/host/hosts.h"
#include "emulator/network/packet_setup.h"
#include "emulator/packets/network_switch.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/load/sections/network.h"

namespace ghostrank {
namespace {

// The most threads that `run.shards: auto` takes: with each more, a thread has less work and hands
// over more messages.
constexpr int kMostByAuto = 4;

constexpr int kNodesOfRack = 32;  // their NICs of one rail share a scheme's switch

// In place of a NIC, the link from a leaf of the switch outside ghostrank to the spine.
Nic uplink(int leaf) { return Nic(-1 - leaf); }

// The row that plays a function in a kind of group; null: the library of the kind's job has none.
const Algorithm* row_of(const JobSpec& spec, const Workload& workload, Func func,
                        std::uint16_t kind) {
  return settings_of(spec, workload, kind).collectives.row(func, own_name(workload, kind));
}

// The servers for a scheme's communicators of one kind, and the tensors that their calls name;
// `spec` is of the kind's job.
AtServers servers_of(const JobSpec& spec, const Workload& workload, std::uint16_t kind,
                     const Algorithm& row) {
  const std::string group = own_name(workload, kind);
  AtServers out = spec.collectives.at_servers;
  const ServerSpec& servers = spec.cluster.servers;
  out.places = servers.places(spec.cluster.rank_nodes());
  out.beside = servers.beside(spec.cluster.rank_nodes());
  out.nics = servers.colocated ? 1 : servers.nics;
  out.cores = servers.cores;
  const auto name = [&](const Op& op) {
    if (op.kind != Op::Kind::collective || op.group != kind || op.tensor == 0) return;
    if (spec.collectives.row(op.func, group) != &row) return;
    if (out.tensors.size() < op.tensor) out.tensors.resize(op.tensor);
    out.tensors[op.tensor - 1] = {op.count, bytes_of(op.dtype)};
  };
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream) name(op);
  return out;
}

// Deals the nodes of every host to its shards. In virtual time, where shards wait for each other,
// every shard gets an equal share of the nodes of each kind (those whose ranks have the same
// roles), so that it has as much to do at every time: the stages of a pipeline are busy one after
// the other. Shares of neighbours keep replicas of a model together. Links belong to the shard of a
// node near them, so where there are any, neighbouring nodes stay together, as in real time.
VectorBy<Node, std::int32_t> shard_of_nodes(const JobSpec& spec, const Workload& workload,
                                            const VectorBy<Node, Host>& host_of_node, int shards,
                                            bool links) {
  VectorBy<Node, std::vector<std::uint16_t>> roles(host_of_node.size());
  if (spec.fabric.kind == FabricKind::virtual_time && !links)
    for (const WorldRank rank : each<WorldRank>(workload.ranks))
      roles[spec.cluster.node_of(rank)].push_back(workload.role_of[rank]);
  std::map<std::pair<Host, std::vector<std::uint16_t>>, std::vector<Node>> kinds;
  for (const Node node : host_of_node.keys())
    kinds[{host_of_node[node], roles[node]}].push_back(node);
  VectorBy<Node, std::int32_t> out(host_of_node.size());
  std::map<Host, std::int64_t> dealt;  // nodes left over by equal shares
  for (const auto& [key, nodes] : kinds) {
    const std::int64_t share = std::ssize(nodes) / shards, left = std::ssize(nodes) % shards;
    std::int64_t& first = dealt[key.first];
    auto next = nodes.begin();
    for (std::int32_t shard = 0; shard < shards; ++shard) {
      const bool one_more = (shard + shards - first % shards) % shards < left;
      for (std::int64_t i = 0; i < share + one_more; ++i) out[*next++] = shard;
    }
    first += left;
  }
  return out;
}

// The cores of the only process: those that it inherits, of which its host's entry may choose some.
// settle_cores() refuses others.
int cores_of_process(const JobSpec& spec) {
  const HostEntry* entry = host_entry(spec, Host(0), 1);
  const auto chosen =
      parse_number_list(entry ? entry->cores : "", std::numeric_limits<std::int32_t>::max());
  return chosen ? std::min(static_cast<int>(chosen->size()), usable_cores()) : usable_cores();
}

std::string count_of_helpers(const SchemeUse& use) {
  return use.helpers.size() == 1 ? "1 helper" : std::to_string(use.helpers.size()) + " helpers";
}

}  // namespace

const std::string& source_of_algorithm(const JobSpec& spec, Func func, const std::string& group) {
  const auto of_group = spec.collectives.groups.find(group);
  if (of_group != spec.collectives.groups.end() && of_group->second.contains(func))
    return spec.source_of("collectives.groups");
  const std::string key = algorithm_key(func);
  return spec.source_of(spec.sources.contains(key) ? key : "collectives.library");
}

VectorBy<Node, Host> host_of_nodes(const JobSpec& spec, int processes) {
  if (processes > 1 && !spec.placement.host_of_node.empty()) return spec.placement.host_of_node;
  const int nodes = spec.cluster.all_nodes();
  const std::int64_t played = spec.slice.empty() ? nodes : std::ssize(spec.slice);
  VectorBy<Node, Host> host(nodes, kNoHost);
  for (std::int64_t n = 0; n < played; ++n)
    host[spec.slice.empty() ? Node(n) : spec.slice[static_cast<std::size_t>(n)]] =
        Host(spec.placement.cyclic ? n % processes : n * processes / played);
  return host;
}

int usable_shards(const JobSpec& spec, int hosts) {
  // All flows share one network, and so do all packets.
  if (spec.fabric.network != NetworkModel::loggp) return 1;
  if (spec.fabric.kind == FabricKind::virtual_time && Topology(spec).lookahead() <= 0) return 1;
  const bool alone = spec.fabric.kind == FabricKind::memory && hosts == 1;
  const int wanted = spec.run.shards > 0 ? spec.run.shards
                     : alone             ? std::min(cores_of_process(spec), kMostByAuto)
                                         : 1;
  VectorBy<Host, int> nodes(hosts);
  for (const Host host : host_of_nodes(spec, hosts))
    if (host != kNoHost) ++nodes[host];
  return std::max(1, std::min(wanted, *std::min_element(nodes.begin(), nodes.end())));
}

Cluster::Cluster(const JobSpec& spec, const Workload& workload, int hosts)
    : workload_(workload),
      topology_(spec),
      hosts_(hosts),
      shards_(usable_shards(spec, hosts)),
      nics_(spec.cluster.all_nodes() * spec.cluster.nics_per_node),
      nics_per_node_(spec.cluster.nics_per_node),
      outside_(spec.network_switch.outside() && is_network(spec.fabric.kind)),
      kinds_(workload.group_names.size()),
      host_of_node_(host_of_nodes(spec, hosts)),
      helpers_of_job_(jobs_of(workload)) {
  for (std::size_t job = 0; job < jobs_of(workload); ++job)
    nccl_nodes_.emplace_back(spec.of_job(job));
  shard_of_node_ = shard_of_nodes(spec, workload, host_of_node_, shards_, topology_.links() > 0);
  for (std::uint32_t link = 0; link < topology_.links(); ++link)
    shard_of_link_.push_back(shard_of_node_[topology_.node_of_link(link)]);
  on_shard_.resize(hosts, std::vector<OnShard>(shards_));
  const int gpus = spec.cluster.gpus_per_node;
  for (const WorldRank rank : each<WorldRank>(workload.ranks)) {
    Location p;
    p.node = spec.cluster.node_of(rank);
    p.nic = nic(p.node, rank.value() % gpus * nics_per_node_ / gpus);
    p.host = host_of_node_[p.node];
    p.shard = shard_of_node_[p.node];
    if (p.host != kNoHost) {
      auto& mates = on_shard_[p.host][p.shard].ranks;
      p.local = static_cast<std::uint32_t>(mates.size());
      mates.push_back(rank);
      if (ranks_played_++ == 0) first_played_ = rank;
    }
    locations_.push_back(p);
  }

  memberships_.resize(locations_.rows().size() * kinds_);
  // Size, nodes, NICs, GPUs, order -> layout.
  std::map<std::vector<std::int32_t>, std::uint32_t> known;
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    const Group& group = workload.groups[g];
    GroupLayout layout;
    std::map<Node, std::int32_t> number;
    std::map<Node, std::map<Nic, std::int32_t>> nics;  // numbered as they come
    std::vector<std::int32_t> on_gpu, on_nic;
    first_played_of_.push_back(kNoRank);
    for (GroupRank i = 0; i < std::ssize(group.members); ++i) {
      const WorldRank rank = group.members[i];
      if (first_played_of_.back() == kNoRank && plays(location(rank).node))
        first_played_of_.back() = i;
      memberships_[rank.index() * kinds_ + group.kind] = {g, i};
      const Location& p = location(rank);
      layout.nodes.push_back(number.try_emplace(p.node, number.size()).first->second);
      auto& used = nics[p.node];
      on_nic.push_back(used.try_emplace(p.nic, used.size()).first->second);
      on_gpu.push_back(rank.value() % gpus);
    }
    for (const auto& [node, used] : nics)
      layout.nics = std::max(layout.nics, static_cast<int>(used.size()));
    layout.one_node = number.size() == 1;
    if (layout.one_node) {  // its messages never leave the node
      layout.nics = 1;
      on_nic.clear();
    }
    layout.gpus =
        spec.cluster.links && number.size() < group.members.size()
            ? on_gpu
            : nccl_nodes_[job_of_kind(workload, group.kind)].gpus_that_matter(layout.nodes, on_gpu);
    std::vector<std::int32_t> key{static_cast<std::int32_t>(group.members.size())};
    key.insert(key.end(), layout.nodes.begin(), layout.nodes.end());
    key.insert(key.end(), on_nic.begin(), on_nic.end());
    key.insert(key.end(), layout.gpus.begin(), layout.gpus.end());
    if (!std::is_sorted(group.members.begin(), group.members.end())) {
      std::vector<std::int32_t> upwards(group.members.size());  // members in the order of ranks
      std::iota(upwards.begin(), upwards.end(), 0);
      std::sort(upwards.begin(), upwards.end(), [&](std::int32_t a, std::int32_t b) {
        return group.members[a] < group.members[b];
      });
      key.push_back(-1);  // what follows are no GPUs
      key.insert(key.end(), upwards.begin(), upwards.end());
    }
    const auto [it, fresh] =
        known.try_emplace(std::move(key), static_cast<std::uint32_t>(layouts_.size()));
    if (fresh) layouts_.push_back(std::move(layout));
    layout_of_.push_back(it->second);
  }
  add_schemes(spec);
  check_network(spec);
}

PartyKind Cluster::kind(WorldParty party) const {
  if (party.value() < workload_.ranks) return PartyKind::rank;
  for (const SchemeUse& use : schemes_) {
    const int helper = party - use.first_helper;
    if (helper >= 0 && helper < std::ssize(use.helpers)) return use.helpers[helper].kind;
  }
  return PartyKind::server;
}

int Cluster::scheme(std::uint32_t group, const Algorithm& row) const {
  if (!row.ends) return -1;
  const auto found = scheme_of_.find({group, row.name});
  return found == scheme_of_.end() ? -1 : found->second;
}

std::vector<SwitchEnd> Cluster::switch_ends(Host host, int shard) const {
  std::vector<SwitchEnd> ends;
  for (std::uint32_t s = 0; s < schemes_.size(); ++s) {
    if (!schemes_[s].outside) continue;
    const SwitchService service = *schemes_[s].ends->switch_service();
    for (int rail = 0; rail < std::ssize(service.rails); ++rail) {
      const std::vector<GroupRank>& workers = service.rails[static_cast<std::size_t>(rail)];
      for (int w = 0; w < std::ssize(workers); ++w) {
        const GroupRank position = workers[static_cast<std::size_t>(w)];
        const Location& at = location(world_party(schemes_[s], position));
        if (at.host == host && at.shard == shard) ends.push_back({s, rail, w, position});
      }
    }
  }
  return ends;
}

// Throws Error(usage) if the job's network model cannot play what the job sends.
void Cluster::check_network(const JobSpec& spec) const {
  const NetworkModel network = spec.fabric.network;
  if (network == NetworkModel::loggp) return;
  const bool by_packets = network == NetworkModel::packet;
  if (!schemes_.empty())
    throw Error(spec.source_of("fabric.network") +
                ": fabric.network: " + (by_packets ? "packet" : "flow") + " cannot play " +
                std::string(schemes_.front().name) + ", whose agents send " +
                (by_packets ? "packets" : "messages") + " of their own; use loggp");
  if (!by_packets) return;
  std::optional<LinkRates> links;
  if (spec.events) links.emplace(*spec.events, topology_);
  packet_setup(spec, topology_, static_cast<std::size_t>(nics_), links ? &*links : nullptr);
}

// Adds a scheme for every group in which some program plays a collective with a row of agents.
void Cluster::add_schemes(const JobSpec& spec) {
  std::set<std::pair<std::uint16_t, Func>> used;
  for (const Role& role : workload_.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream.distinct())
          if (op.kind == Op::Kind::collective) used.insert({op.group, op.func});
  for (const auto& [kind, func] : used) {
    if (is_service(workload_, kind)) continue;
    const Algorithm* row = row_of(spec, workload_, func, kind);
    if (!row || !row->ends) continue;
    for (std::uint32_t g = 0; g < workload_.groups.size(); ++g) {
      if (workload_.groups[g].kind != kind) continue;
      if (!scheme_of_.contains({g, row->name})) add_scheme(spec, g, *row);
      SchemeUse& use = schemes_[scheme_of_.at({g, row->name})];
      if (use.outside) check_switch_knows(spec, func, use);
    }
  }
}

// Throws Error(usage) unless the switch knows the function's packets. Sets `all_functions` if not
// every switch knows them. An external switch that ghostrank tells of the job may know any, and
// refuses the others itself.
void Cluster::check_switch_knows(const JobSpec& spec, Func func, SchemeUse& use) const {
  const SwitchSpec& sw = spec.network_switch;
  const SwitchService service = *use.ends->switch_service();
  if (std::ranges::count(service.of_every, func) > 0) return;
  use.all_functions = true;
  const bool told = !sw.socket.empty() && !sw.socket.starts_with(kControllerPrefix);
  const bool known = std::ranges::count(service.of_ours, func) > 0;
  if (known && (told || (sw.started() && sw.program.empty()))) return;
  const std::uint16_t kind = workload_.groups[use.group].kind;
  throw Error(
      source_of_algorithm(settings_of(spec, workload_, kind), func, own_name(workload_, kind)) +
      ": the switch of switch.target knows no packets of " + std::string(name_of(func)) + " by " +
      std::string(use.name) + "; choose another algorithm for it, or use switch.target: model" +
      (known ? ", or compiled or dpdk without switch.program, or name switch.socket of an "
               "external one"
             : ""));
}

void Cluster::add_scheme(const JobSpec& spec, std::uint32_t group, const Algorithm& row) {
  const std::uint16_t kind = workload_.groups[group].kind;
  const JobSpec& own = settings_of(spec, workload_, kind);
  const auto refuse = [&](const std::string& why) {
    throw Error(source_of_algorithm(own, row.func, own_name(workload_, kind)) + ": " +
                std::string(row.library) + "/" + std::string(row.name) + " " + why);
  };
  if (is_slice())
    refuse(
        "has agents, whose state a slice cannot have without the rest of the cluster; use "
        "scale.mode: dilate, or an algorithm without");
  SchemeUse use{group, row.library, row.name, nullptr, {}, WorldParty(parties())};
  use.parties.assign(members_of(group).begin(), members_of(group).end());
  Communicator comm;
  comm.node_of = nodes_of_layout(layout(group));
  comm.in_switch = own.collectives.in_switch;
  for (const WorldRank rank : members_of(group)) comm.nic_of.push_back(location(rank).nic.value());
  comm.at_servers = servers_of(own, workload_, kind, row);
  comm.omnireduce = own.collectives.omnireduce;
  if (topology_.links() > 0) comm.switches = switches_at(spec, members_of(group));
  const auto size = static_cast<int>(members_of(group).size());
  const auto make_ends = [&] {
    try {
      use.ends = row.ends(size, comm);
    } catch (const std::invalid_argument& error) {
      refuse(std::string("cannot serve a group of ") + std::to_string(size) + ": " + error.what());
    }
    if (!use.ends || use.ends->size() != size) refuse("gives no ends for its communicator");
  };
  make_ends();
  use.helpers = use.ends->helpers();
  if (use.ends->needs_copies() && is_network(spec.fabric.kind))
    refuse(
        "needs switches that copy its packets, which only a modelled network has; use "
        "fabric.kind: virtual or memory, or unicast");
  const auto is_switch = [](const Helper& h) { return h.kind == PartyKind::network_switch; };
  if (!spec.network_switch.fails_at.empty() && !use.ends->survives().restart &&
      std::ranges::any_of(use.helpers, is_switch))
    refuse("does not survive a switch that fails; leave switch.fails_at_us away");
  const auto service = use.ends->switch_service();
  use.outside = outside_ && !use.helpers.empty() && service.has_value();
  if (use.outside) {
    reserve_slots(spec, use, comm);
    if (use.first_slot > 0) make_ends();  // which number their slots from there on
  }
  // An external switch without switch.socket may be leaves and a spine.
  const SwitchSpec& sw = spec.network_switch;
  const bool many = use.outside && use.helpers.size() > service->rails.size();
  const bool levels = sw.started() ? sw.leaves > 1 : sw.socket.empty();
  if (outside_ && !use.helpers.empty() && (!use.outside || (many && !levels)))
    refuse("needs " + count_of_helpers(use) + " (" + std::string(name_of(use.helpers[0].kind)) +
           ") for a group of " + std::to_string(size) +
           ", which the one switch of switch.target cannot play; use switch.target: model" +
           (many ? ", or groups of at most 32 nodes, or several switches: switch.leaves: 2 or more "
                   "with switch.target: compiled "
                   "or dpdk, or leaves and a spine that run (docs/switch.md)"
                 : ""));
  if (use.outside && sw.leaves > 1 && !service->format.empty())
    refuse("is summed by one switch alone; leave out switch.leaves, or use switch.target: model");
  for (std::size_t i = 0; i < use.helpers.size(); ++i) {
    // On a real network a switch outside ghostrank plays the switch, or else a server does.
    const bool in_network = use.helpers[i].kind == PartyKind::network_switch &&
                            use.helpers[i].beside == kNoRank &&
                            (outside_ || !is_network(spec.fabric.kind));
    if (!in_network && use.helpers[i].beside == kNoRank &&
        own.cluster.servers.places(own.cluster.rank_nodes()) == 0)
      refuse("needs " + count_of_helpers(use) + " (" + std::string(name_of(use.helpers[i].kind)) +
             ") for each communicator, and the job has no servers; add  servers: {count: 1}");
    Location location =
        in_network ? switch_location(spec, use, use.helpers[i]) : helper_location(spec, use, i);
    OnShard& mates = on_shard_[location.host][location.shard];
    location.local = static_cast<std::uint32_t>(mates.ranks.size() + mates.helpers.size());
    mates.helpers.push_back(use.parties.emplace_back(locations_.push_back(location)));
    if (!in_network && use.helpers[i].beside == kNoRank)
      ++helpers_of_job_[job_of_kind(workload_, kind)];
  }
  scheme_of_[{group, row.name}] = static_cast<int>(schemes_.size());
  schemes_.push_back(std::move(use));
}

// The switches as a scheme may name them in its packets.
Communicator::Switches Cluster::switches_at(const JobSpec& spec,
                                            const std::vector<WorldRank>& ranks) const {
  using Kind = TopologySpec::Kind;
  Communicator::Switches switches;
  const SwitchGraph& graph = topology_.routes().graph();
  const Kind kind = spec.cluster.topology.kind;
  switches.regular = kind != Kind::file && kind != Kind::torus && kind != Kind::dragonfly;
  if (kind == Kind::fat_tree) {
    const FatTree size = fat_tree_of(spec.cluster);
    switches.pods = size.pods;
    switches.leaves = size.leaves;
    switches.spines = size.spines;
    switches.cores = size.cores;
  } else {
    switches.leaves = static_cast<int>(graph.leaves);
    switches.spines = std::max(1, static_cast<int>(graph.switches.size() - graph.leaves));
  }
  std::vector<int> taken(graph.leaves);
  VectorBy<Nic, int> port(graph.leaf_of.size());
  for (const Nic nic : graph.leaf_of.keys()) port[nic] = taken[graph.leaf_of[nic]]++;
  switches.ports = *std::ranges::max_element(taken);
  for (const WorldRank rank : ranks) {
    const Nic nic = location(rank).nic;
    switches.leaf_of.push_back(static_cast<std::int32_t>(graph.leaf_of[nic]));
    switches.port_of.push_back(port[nic]);
  }
  return switches;
}

// Gives the communicator slots that no other one has on a NIC of its ranks; where it crosses
// leaves, nor on their links to the spine. A scheme says how many it has.
void Cluster::reserve_slots(const JobSpec& spec, SchemeUse& use, Communicator& comm) {
  std::set<Nic> ways;
  std::set<int> leaves;
  for (const WorldRank rank : members_of(use.group)) {
    const Location& at = location(rank);
    ways.insert(at.nic);
    leaves.insert(
        leaf_of_node(at.node.value(), spec.cluster.all_nodes(), spec.network_switch.leaves));
  }
  if (leaves.size() > 1) {
    if (use.ends->switch_service()->rails.size() > 1)
      throw Error(
          spec.source_of("switch.leaves") + ": switch.leaves: a group of " +
          std::to_string(use.parties.size()) +
          " ranks has several NICs of a node and crosses leaves, which have one link each to "
          "the spine; give its nodes one NIC (cluster.nics_per_node), let the scheme serve "
          "groups of one rank per node (collectives.groups), or use one switch");
    for (const int leaf : leaves) ways.insert(uplink(leaf));
  }
  for (const Nic way : ways) use.first_slot = std::max(use.first_slot, next_slot_[way]);
  const int end = use.first_slot + use.ends->switch_service()->slots;
  for (const Nic way : ways) next_slot_[way] = end;
  comm.in_switch.first_slot = use.first_slot;
}

// Where the switch is: near the rank that `helper` names, else the communicator's first one. That
// rank's shard plays the switch. Throws Error(usage) if the switch has no slots left.
Location Cluster::switch_location(const JobSpec& spec, const SchemeUse& use, const Helper& helper) {
  const bool shared = helper.near != kNoRank;
  const Location near = location(members_of(use.group).at(shared ? helper.near : 0));
  if (use.outside) {  // there is one; it manages its slots itself
    const auto [one, first] = switches_.try_emplace({-1, -1, 0});
    if (first) one->second.location = new_switch(near);
    return one->second.location;
  }
  const int rail = near.nic.value() % nics_per_node_;
  const int rack = helper.level == 0 ? near.node.value() / kNodesOfRack : -1;
  if (!shared) return new_switch(near);
  // Nodes in another order than their ranks: a communicator may have several switches in a rack.
  const auto is_its = [&](const SharedSwitch& one) {
    return std::any_of(use.parties.begin(), use.parties.end(),
                       [&](WorldParty party) { return location(party).nic == one.location.nic; });
  };
  SharedSwitch* found = nullptr;
  for (int nth = 0; !found; ++nth) {
    const auto [at, fresh] = switches_.try_emplace({rail, rack, nth});
    if (fresh) at->second.location = new_switch(near);
    if (rack < 0 || fresh || !is_its(at->second)) found = &at->second;
  }
  SharedSwitch& here = *found;
  here.slots += helper.slots;
  // Jobs that share switches agree on their memory.
  const JobSpec& own = settings_of(spec, workload_, workload_.groups[use.group].kind);
  if (const int most = own.collectives.in_switch.memory_slots; here.slots > most)
    throw Error(own.source_of("switch.memory_slots") + ": switch.memory_slots: the switch " +
                (rack < 0 ? std::string("above the racks") : "of rack " + std::to_string(rack)) +
                " on rail " + std::to_string(rail) + " has " + std::to_string(most) +
                " slots, and the job's communicators ask for " + std::to_string(here.slots) +
                " so far; lower switch.slots, or let the scheme serve fewer groups "
                "(collectives.groups)");
  return here.location;
}

Location Cluster::new_switch(Location near) {
  near.nic = topology_.add_switch(near.nic);
  near.node = Node(near.nic.value() / nics_per_node_);
  nics_ = near.nic.value() + nics_per_node_;
  return near;
}

// Where the helper is: with the rank that it is beside, else where the placement of its job's
// servers puts it.
Location Cluster::helper_location(const JobSpec& spec, const SchemeUse& use,
                                  std::size_t helper) const {
  const GroupRank beside = use.helpers[helper].beside;
  Location location;
  if (beside != kNoRank) {
    location = this->location(members_of(use.group).at(beside));
  } else {
    const ServerLocation chosen = server_location(spec, use, helper);
    location.node = Node(chosen.node);
    location.nic = nic(location.node, chosen.nic);
  }
  location.host = host_of_node_[location.node];
  location.shard = shard_of_node_[location.node];
  return location;
}

// A job's placement numbers its own nodes from 0, and then its servers; here these are nodes of the
// cluster, whose servers are in the order of the jobs.
ServerLocation Cluster::server_location(const JobSpec& spec, const SchemeUse& use,
                                        std::size_t helper) const {
  const std::size_t job = job_of_kind(workload_, workload_.groups[use.group].kind);
  const JobSpec& own = spec.of_job(job);
  const ServerSpec& servers = own.cluster.servers;
  const auto built_in = server_placements().subspan(servers.colocated ? 1 : 0);
  const ServerPlacement& row = servers.placement ? *servers.placement : built_in.front();
  const int own_nodes = own.cluster.rank_nodes();
  const ServerSites sites{own_nodes, nics_per_node_, servers.count, servers.nics};
  const int gpus = spec.cluster.gpus_per_node;
  std::vector<std::int32_t> nodes;
  for (const WorldRank rank : members_of(use.group))
    nodes.push_back((rank - first_rank(workload_, job)) / gpus);
  ServerLocation chosen = row.place(
      {use.helpers[helper].kind, helpers_of_job_[job], static_cast<int>(helper), nodes}, sites);
  if (const std::string wrong = why_no_location(chosen, row, sites); !wrong.empty())
    throw Error(own.source_of("servers.placement") +
                ": servers.placement: " + std::string(row.name) + " " + wrong);
  if (spec.jobs.empty()) return chosen;
  if (chosen.node < own_nodes) {
    chosen.node = spec.jobs[job].nodes[static_cast<std::size_t>(chosen.node)].value();
  } else {
    chosen.node += spec.cluster.rank_nodes() - own_nodes;
    for (std::size_t before = 0; before < job; ++before)
      chosen.node += spec.of_job(before).cluster.server_nodes();
  }
  return chosen;
}

NicPair nics_of(const Cluster& cluster, const Schedule& schedule,
                const std::vector<WorldRank>& members, GroupRank from, GroupRank to, int channel) {
  const auto pick = [&](GroupRank member, Way way) {
    const Location& location = cluster.location(members[member]);
    const int chosen =
        schedule.nics() > 0 ? schedule.nic(from, to, channel, way) : Schedule::kOwnNic;
    if (chosen == Schedule::kOwnNic) return location.nic;
    if (Schedule::is_nic_of(chosen))
      return cluster.location(members[Schedule::rank_beside(chosen)]).nic;
    return cluster.nic(location.node, chosen * cluster.nics_per_node() / schedule.nics());
  };
  return {pick(from, Way::send), pick(to, Way::recv)};
}

}  // namespace ghostrank
