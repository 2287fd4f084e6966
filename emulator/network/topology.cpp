#include "emulator/network/topology.h"

#include <cstdio>

#include "emulator/common/random.h"
#include "profiles/error.h"
#include "profiles/job/leaf_spine.h"

namespace ghostrank {
namespace {

// Returns whether to model links; a real network has its own.
bool has_links(const JobSpec& spec) {
  return spec.cluster.topology.kind != TopologySpec::Kind::nonblocking &&
         !is_network(spec.fabric.kind);
}

// Returns the first node of a group of neighbours. Groups differ in size by one node at most.
int first_of_group(int group, int nodes, int groups) {
  return static_cast<int>((std::int64_t{group} * nodes + groups - 1) / groups);
}

}  // namespace

Topology::Topology(const JobSpec& spec)
    : first_server_nic_(spec.cluster.rank_nodes() * spec.cluster.nics_per_node),
      first_switch_nic_(spec.cluster.all_nodes() * spec.cluster.nics_per_node),
      own_(LinkSpeed::from_rate(spec.cluster.nic.rate_bps, spec.cluster.nic.latency,
                                spec.fabric.framing)),
      server_(LinkSpeed::from_rate(spec.cluster.servers.nic.rate_bps,
                                   spec.cluster.servers.nic.latency, spec.fabric.framing)),
      servers_(spec.cluster.all_nodes() > spec.cluster.rank_nodes()),
      seed_(spec.run.seed),
      nics_per_node_(spec.cluster.nics_per_node),
      routing_(spec.cluster.topology.routing ? spec.cluster.topology.routing : &routings().front()),
      spec_(spec.cluster.topology) {
  if (!has_links(spec)) return;
  const LeafSpine switches = leaf_spine_of(spec.cluster);
  nodes_ = spec.cluster.all_nodes();
  groups_ = switches.groups;
  rails_ = static_cast<std::uint32_t>(switches.rails);
  spines_ = static_cast<std::uint32_t>(switches.spines);
  links_ = static_cast<std::uint32_t>(switches.links());
  link_ = LinkSpeed::from_rate(switches.uplink_bps, spec_.link_latency, spec.fabric.framing);
  leaf_of_.resize(nodes_ * nics_per_node_);
  for (const Nic nic : leaf_of_.keys()) {
    const int node = nic.value() / nics_per_node_, rail = nic.value() % nics_per_node_;
    const auto group = static_cast<std::uint32_t>(std::int64_t{node} * groups_ / nodes_);
    leaf_of_[nic] = group * rails_ + static_cast<std::uint32_t>(rail) % rails_;
  }
}

Nic Topology::add_switch(Nic near) {
  const Nic nic = first_switch_nic_ + switches_++ * nics_per_node_;
  if (links_ > 0) leaf_of_.resize(nic.value() + nics_per_node_, leaf_of_[near]);
  return nic;
}

Picoseconds Topology::lookahead() const {
  Picoseconds whole = servers_ ? std::min(own_.latency, server_.latency) : own_.latency;
  if (switches_ > 0) whole /= 2;
  return links_ == 0 ? whole : whole / (Path::kMost + 1);
}

std::string Topology::link_name(std::uint32_t link) const {
  const std::uint32_t number = link % (links_ / 2);
  const std::string leaf = "leaf" + std::to_string(number / spines_);
  const std::string spine = "spine" + std::to_string(number % spines_);
  return link < links_ / 2 ? leaf + "-" + spine : spine + "-" + leaf;
}

Node Topology::node_of_link(std::uint32_t link) const {
  const std::uint32_t leaf = link % (links_ / 2) / spines_;
  return Node(first_of_group(static_cast<int>(leaf / rails_), nodes_, groups_));
}

std::vector<Topology::Tier> Topology::tiers() const {
  if (links_ == 0) return {};
  return {{"leaf-spine", 0, links_ / 2}, {"spine-leaf", links_ / 2, links_ / 2}};
}

std::string Topology::description() const {
  if (links_ == 0) return "";
  const bool rail = spec_.kind == TopologySpec::Kind::rail_optimised;
  const auto count = [](std::uint32_t n, const char* one, const char* many) {
    return std::to_string(n) + " " + (n == 1 ? one : many);
  };
  std::array<char, 64> rate{"unlimited"};
  if (link_.limited())
    std::snprintf(rate.data(), rate.size(), "%.4g Gb/s", 8e3 / link_.ps_per_byte);
  return std::string(rail ? "rail_optimised: " : "leaf_spine: ") +
         count(links_ / 2 / spines_, "leaf", "leaves") + ", " + count(spines_, "spine", "spines") +
         ", links of " + rate.data();
}

std::uint32_t Topology::choose(const RoutedConnection& connection, Nic from, Nic to,
                               std::uint64_t message) const {
  RandomBits hash({seed_, connection.group, connection.channel, connection.from.index(),
                   connection.to.index()});
  const RoutedFlow flow{from, to, nics_per_node_, hash.next(), message, paths(from, to)};
  const std::uint32_t chosen = routing_->choose(flow);
  if (chosen >= flow.paths)
    throw Error("cluster.topology.routing: " + std::string(routing_->name) + " chose path " +
                std::to_string(chosen) + " of " + std::to_string(flow.paths) +
                "; they are counted from 0");
  return chosen;
}

}  // namespace ghostrank
