// The network between NICs as it is modelled: how fast each NIC is, which links are between two of
// them, and how long the way takes where nothing is on it. A message is serialised by the NIC that
// sends it, by every link on its way, and by the NIC that receives it; switches never block.
//
//   nonblocking      no links: one ideal switch
//   with leaves and spines (profiles/job/leaf_spine.h):
//     one leaf       NIC ─ leaf ─ NIC: no links either
//     two            NIC ─ leaf ── spine ── leaf ─ NIC: a link up and a link down, by the spine
//     that
//                    the routing chooses
//
// The latency between two NICs is divided evenly among the stretches of the way, so that an idle
// network of links takes as long as one without; what links add (link_latency) comes on top.
//
// Units: NICs are numbered over the whole cluster, node * nics_per_node + NIC of the node; links
// from 0. Threading: immutable.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/routing.h"
#include "emulator/network/port.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The links between two NICs, in order.
struct Path {
  static constexpr int kMost = 2;
  std::array<std::uint32_t, kMost> link{};
  int links = 0;
};

// A connection, as routings know it. `group`: as Connection has it in traffic.h.
struct RoutedConnection {
  std::uint32_t group = 0;
  std::uint16_t channel = 0;
  std::int32_t from = 0, to = 0;  // parties of the job
  auto operator<=>(const RoutedConnection&) const = default;
};

class Topology {
 public:
  explicit Topology(const JobSpec& spec);

  // Of all NICs of ranks' nodes; of those of dedicated servers; of any one.
  const LinkSpeed& own() const { return own_; }
  const LinkSpeed& nic(int nic) const {
    return nic < first_server_nic_ ? own_ : nic < first_switch_nic_ ? server_ : switch_;
  }

  // A switch that takes part in a scheme, a node of its own behind all others: near this NIC where
  // there are leaves. Returns its NIC, which stands for as many ports as it needs: it is never
  // busy, and halfway between any two others. For who makes the topology, before anybody shares it.
  int add_switch(int near);
  bool is_switch(int nic) const { return nic >= first_switch_nic_; }

  // One way through an idle network without links; each NIC answers for its half.
  Picoseconds latency(int from, int to) const {
    const Picoseconds a = nic(from).latency, b = nic(to).latency;
    return a == b ? a : (a + b) / 2;
  }
  // From one place where a message can be held up to the next, at least: so long nothing that one
  // shard does can reach another.
  Picoseconds lookahead() const;

  // ---- Links ----

  std::uint32_t links() const { return links_; }
  const LinkSpeed& link(std::uint32_t) const { return link_; }  // all of one kind, so far
  std::string link_name(std::uint32_t link) const;              // "leaf0-spine1"
  // A node near it, whose shard plays it.
  int node_of_link(std::uint32_t link) const;
  // Links of one kind, in order: those up, then those down.
  struct Tier {
    std::string name;
    std::uint32_t first = 0, count = 0;
  };
  std::vector<Tier> tiers() const;
  std::string description() const;  // "leaf_spine: 4 leaves, 8 spines, …"; empty: without links

  // How many ways of equal length there are from one NIC to another; 0: without links.
  std::uint32_t ways(int from, int to) const {
    return links_ == 0 || leaf_of_[at(from)] == leaf_of_[at(to)] ? 0 : spines_;
  }
  Path path(int from, int to, std::uint32_t way) const {
    const std::uint32_t up = leaf_of_[at(from)] * spines_ + way;
    return {{up, links_ / 2 + leaf_of_[at(to)] * spines_ + way}, 2};
  }
  // The way that a connection takes; its `message`, from 1, where the routing is asked for each.
  // Throws Error(usage): the routing chose one that there is not.
  std::uint32_t choose(const RoutedConnection& connection, int from, int to,
                       std::uint64_t message = 0) const;
  bool per_message() const { return routing_->per_message; }
  std::string_view routing() const { return routing_->name; }

  // Of a way with so many links: of each stretch before a link, and of the last one. They add up to
  // latency().
  Picoseconds stretch(int from, int to, int links) const { return latency(from, to) / (links + 1); }
  Picoseconds last_stretch(int from, int to, int links) const {
    return latency(from, to) - links * stretch(from, to, links);
  }
  // From end to end, over the links of a path.
  Picoseconds way_latency(int from, int to, int links) const {
    return latency(from, to) + links * link_.latency;
  }

 private:
  static std::size_t at(int nic) { return static_cast<std::size_t>(nic); }

  int first_server_nic_, first_switch_nic_, switches_ = 0;
  LinkSpeed own_, server_, switch_{};
  bool servers_;
  std::uint64_t seed_;
  int nics_per_node_;
  const Routing* routing_;
  TopologySpec spec_;
  LinkSpeed link_;  // its latency: what it adds
  int nodes_ = 0, groups_ = 0;
  std::uint32_t rails_ = 1, spines_ = 1, links_ = 0;
  std::vector<std::uint32_t> leaf_of_;  // by NIC; empty without links
};

}  // namespace ghostrank
