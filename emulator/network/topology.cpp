#include "emulator/network/topology.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "emulator/common/random.h"
#include "profiles/job/key_error.h"

namespace ghostrank {
namespace {

// Returns whether to model links; a real network has its own.
bool has_links(const JobSpec& spec) {
  return spec.cluster.topology.kind != TopologySpec::Kind::nonblocking &&
         !is_network(spec.fabric.kind);
}

}  // namespace

Topology::Topology(const JobSpec& spec)
    : first_server_nic_(spec.cluster.rank_nodes() * spec.cluster.nics_per_node),
      first_switch_nic_(spec.cluster.all_nodes() * spec.cluster.nics_per_node),
      speed_{LinkSpeed::from_rate(spec.cluster.nic.rate_bps, spec.cluster.nic.latency,
                                  spec.fabric.framing),
             LinkSpeed::from_rate(spec.cluster.servers.nic.rate_bps,
                                  spec.cluster.servers.nic.latency, spec.fabric.framing),
             LinkSpeed{}},
      seed_(spec.run.seed),
      nics_per_node_(spec.cluster.nics_per_node),
      routing_(spec.cluster.topology.routing ? spec.cluster.topology.routing : &routings().front()),
      queue_pairs_(one_path() ? spec.fabric.queue_pairs : QueuePairs{}),
      spec_(spec.cluster.topology) {
  const LinkSpeed &own = speed_[0], &server = speed_[1];
  if (server.ps_per_byte == own.ps_per_byte && server.latency == own.latency)
    first_server_nic_ = first_switch_nic_;
  for (std::size_t from = 0; from < kKinds; ++from)
    for (std::size_t to = 0; to < kKinds; ++to)
      latency_[from][to] = (speed_[from].latency + speed_[to].latency) / 2;
  latency_[kKinds - 1][kKinds - 1] = own.latency / 2;
  if (!has_links(spec)) return;
  SwitchGraph graph = switches_of(spec.cluster);
  leaf_of_ = graph.leaf_of;
  std::map<double, std::uint32_t> known;  // by rate
  for (int direction = 0; direction < 2; ++direction)
    for (const SwitchGraph::Cable& cable : graph.cables) {
      const auto [at, fresh] =
          known.try_emplace(cable.bps, static_cast<std::uint32_t>(speeds_.size()));
      if (fresh)
        speeds_.push_back(LinkSpeed::from_rate(cable.bps, spec_.link_latency, spec.fabric.framing));
      speed_of_link_.push_back(at->second);
    }
  routes_ = with_source(spec, [&] { return std::make_unique<SwitchRoutes>(std::move(graph)); });
}

Nic Topology::add_switch(Nic near) {
  const Nic nic = first_switch_nic_ + switches_++ * nics_per_node_;
  if (routes_) leaf_of_.resize(nic.value() + nics_per_node_, leaf_of_[near]);
  return nic;
}

Picoseconds Topology::lookahead() const {
  Picoseconds whole = std::min(own().latency, nic(first_switch_nic_ - 1).latency);
  if (switches_ > 0) whole /= 2;
  return routes_ ? whole / (routes_->longest() + 1) : whole;
}

std::string Topology::link_name(std::uint32_t link) const {
  const SwitchGraph& graph = routes_->graph();
  const auto cables = static_cast<std::uint32_t>(graph.cables.size());
  return link < cables ? cable_name(graph, link) : cable_name_back(graph, link - cables);
}

Node Topology::node_of_link(std::uint32_t link) const {
  const SwitchGraph& graph = routes_->graph();
  return graph.switches[graph.cables[link % graph.cables.size()].a].near;
}

LinkSpeed Topology::links_of(std::uint32_t leaf) const {
  double bps = 0;
  for (const SwitchGraph::Cable& cable : routes_->graph().cables) {
    if ((cable.a != leaf && cable.b != leaf) || cable.failed) continue;
    if (cable.bps == 0) return {};  // unlimited
    bps += cable.bps;
  }
  return LinkSpeed::from_rate(bps, 0, speeds_.front().framing);
}

std::vector<Topology::Tier> Topology::tiers() const {
  if (links() == 0) return {};
  std::vector<Tier> up, down;
  for (const SwitchGraph::Tier& tier : routes_->graph().tiers) {
    const auto first = routes_->graph().cables.begin() + tier.first;
    const auto failed = static_cast<std::uint32_t>(std::count_if(
        first, first + tier.count, [](const SwitchGraph::Cable& cable) { return cable.failed; }));
    up.push_back({tier.up, tier.first, tier.count, failed});
    down.push_back({tier.down, links() / 2 + tier.first, tier.count, failed});
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

std::string Topology::description() const {
  if (links() == 0) return "";
  const auto [slowest, fastest] = std::minmax_element(
      speeds_.begin(), speeds_.end(),
      [](const LinkSpeed& a, const LinkSpeed& b) { return a.ps_per_byte > b.ps_per_byte; });
  const auto rate = [](const LinkSpeed& link) {
    std::array<char, 64> text{"unlimited"};
    if (link.limited())
      std::snprintf(text.data(), text.size(), "%.4g Gb/s", 8e3 / link.ps_per_byte);
    return std::string(text.data());
  };
  const std::string most = rate(*fastest), least = rate(*slowest);
  return routes_->graph().summary + ", links of " + (least == most ? "" : least + " to ") + most;
}

std::uint32_t Topology::paths(Nic from, Nic to) const {
  if (!routes_ || leaf_of_[from] == leaf_of_[to]) return 0;
  const std::uint32_t paths = routes_->paths(leaf_of_[from], leaf_of_[to]);
  if (paths > 0) return paths;
  const auto name = [this](Nic nic) {
    return "n" + std::to_string(nic.value() / nics_per_node_) + ".nic" +
           std::to_string(nic.value() % nics_per_node_);
  };
  throw KeyError(
      "cluster.topology.kind",
      "cluster.topology: no path leads from " + name(from) + " to " + name(to) +
          "; use a library that changes rails inside nodes, or a topology that connects them");
}

FiveTuple Topology::five_tuple(const RoutedConnection& connection, Nic from, Nic to,
                               std::uint32_t queue_pair) const {
  RandomBits drawn({seed_, connection.group, connection.channel, connection.from.index(),
                    connection.to.index()});
  const auto number = [&] { return static_cast<std::uint32_t>(drawn.next() & 0xffffff); };
  for (std::uint32_t pair = 0; pair < queue_pair; ++pair) number(), number();
  const std::uint32_t local = number(), remote = number();
  constexpr std::uint32_t kFirst = 10u << 24;
  return {.source = kFirst + static_cast<std::uint32_t>(from.value()),
          .target = kFirst + static_cast<std::uint32_t>(to.value()),
          .source_port = roce_source_port(local, remote)};
}

std::uint32_t Topology::choose(const RoutedConnection& connection, Nic from, Nic to,
                               std::uint64_t number, std::uint32_t queue_pair) const {
  const FiveTuple tuple = five_tuple(connection, from, to, queue_pair);
  RoutedFlow flow{from, to, nics_per_node_, hash_of(tuple), number, paths(from, to)};
  flow.first_hops = routes_->first_hops(leaf_of_[from], leaf_of_[to]);
  flow.target_place = is_switch(to) ? static_cast<std::uint32_t>(to.index()) : routes_->place(to);
  const std::uint32_t chosen = routing_->choose(flow);
  if (chosen >= flow.paths)
    throw KeyError("cluster.topology.routing",
                   "cluster.topology.routing: " + std::string(routing_->name) + " chose path " +
                       std::to_string(chosen) + " of " + std::to_string(flow.paths) +
                       "; they are counted from 0");
  return chosen;
}

}  // namespace ghostrank
