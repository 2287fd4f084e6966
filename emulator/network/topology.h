// The modelled network between NICs: how fast each NIC is, which links lie between two NICs, and
// the latency of the path when it is idle. The sending NIC, every link on the path and the
// receiving NIC serialise a message; switches never block.
//
// clang-format off
//
//   nonblocking         no links: one ideal switch
//   switches and cables (profiles/job/switches.h):
//     in one leaf       NIC ─ leaf ─ NIC                      no links either
//     between leaves    NIC ─ leaf ── spine ── leaf ─ NIC     links up and down, on one of the
//                                                             shortest paths; the routing chooses
//
// clang-format on
//
// The hops of a path (one before each link, one after the last) share the latency between its two
// NICs evenly, so an idle network with links is as fast as one without. Links add link_latency to
// it. Copies of a note share it as on the longest path (Shard::note_by_links), to meet at links.
//
// Units: NICs are numbered over the whole cluster, node * nics_per_node + NIC of the node; links
// from 0; latencies in emulated picoseconds. Threading: immutable once shared; only add_switch()
// changes it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/common/number.h"
#include "collectives/routing.h"
#include "emulator/common/random.h"
#include "emulator/network/five_tuple.h"
#include "emulator/network/port.h"
#include "emulator/network/switch_routes.h"
#include "profiles/job/job.h"

namespace ghostrank {

// A connection, as the routing sees it. `group`: as in Connection (emulator/traffic/traffic.h).
struct RoutedConnection {
  std::uint32_t group = 0;
  std::uint16_t channel = 0;
  WorldParty from, to;
  auto operator<=>(const RoutedConnection&) const = default;

  struct Hash {
    std::size_t operator()(const RoutedConnection& c) const {
      return RandomBits({c.group, c.channel, c.from.index(), c.to.index()}).next();
    }
  };
};

class Topology {
 public:
  explicit Topology(const JobSpec& spec);

  // own(): the speed of the NICs of ranks' nodes. nic(): the speed of any NIC, of dedicated servers
  // and switches too.
  const LinkSpeed& own() const { return speed_[0]; }
  const LinkSpeed& nic(Nic nic) const { return speed_[kind_of(nic)]; }

  // Adds a switch that takes part in a scheme, as a node behind all others; where there are leaves,
  // it is at the leaf of NIC `near`. Returns its NIC, which stands for as many ports as the switch
  // needs: it is never busy, and lies halfway between any two other NICs. Call it before sharing
  // the topology.
  Nic add_switch(Nic near);
  bool is_switch(Nic nic) const { return nic >= first_switch_nic_; }

  // Returns the one-way latency of an idle network without links; each NIC contributes half. Two
  // switches are as far apart as a switch and a NIC.
  Picoseconds latency(Nic from, Nic to) const { return latency_[kind_of(from)][kind_of(to)]; }
  // Returns the least latency from one point that can delay a message (a NIC or a link) to the
  // next. Within this time nothing that one shard does can affect another.
  Picoseconds lookahead() const;

  // ---- Links ----

  std::uint32_t links() const { return static_cast<std::uint32_t>(speed_of_link_.size()); }
  // Its latency is link_latency, which comes on top of the NICs'.
  const LinkSpeed& link(std::uint32_t number) const { return speeds_[speed_of_link_[number]]; }
  std::string link_name(std::uint32_t link) const;  // "leaf0-spine1"
  // Returns a node near the link; that node's shard plays the link.
  Node node_of_link(std::uint32_t link) const;
  // Links of one kind, in order: those up, then those down.
  struct Tier {
    std::string name;
    std::uint32_t first = 0, count = 0;
    std::uint32_t failed = 0;  // of these: no path leads over them
  };
  std::vector<Tier> tiers() const;
  std::string description() const;  // "leaf_spine: 4 leaves, 8 spines, …"; empty: without links

  // Returns how many paths of equal length lead from one NIC to another; 0: no links lie between
  // them. Throws Error(usage) if their switches are not connected.
  std::uint32_t paths(Nic from, Nic to) const;
  Path path(Nic from, Nic to, std::uint32_t number) const {
    return routes_->path(leaf_of_[from], leaf_of_[to], number);
  }
  std::uint32_t leaf_of(Nic nic) const { return leaf_of_[nic]; }
  // All links from a leaf to other switches, as one; those to it are alike.
  LinkSpeed links_of(std::uint32_t leaf) const;
  const SwitchRoutes& routes() const { return *routes_; }  // between leaves
  int hops(Nic from, Nic to) const {                       // links on each of these paths
    return routes_ ? routes_->hops(leaf_of_[from], leaf_of_[to]) : 0;
  }
  // Returns the path of a connection's queue pair or, for routings that choose per message or
  // flowlet, of the connection's message or flowlet `number`, from 1. Throws Error(usage) when the
  // routing chooses a path that does not exist.
  std::uint32_t choose(const RoutedConnection& connection, Nic from, Nic to,
                       std::uint64_t number = 0, std::uint32_t queue_pair = 0) const;
  // What switches hash of the packets of a connection's queue pair. NICs have the addresses
  // 10.0.0.0 and up. The numbers of the pairs are drawn from the connection's name and run.seed,
  // because real ones depend on what a machine has done before; those of a pair do not depend on
  // how many there are.
  FiveTuple five_tuple(const RoutedConnection& connection, Nic from, Nic to,
                       std::uint32_t queue_pair) const;
  // Of a connection of a collective library. One, where the routing does not choose for
  // connections.
  const QueuePairs& queue_pairs() const { return queue_pairs_; }
  // The same path, as a number by which path_by_id() finds it at once.
  std::uint32_t choose_id(const RoutedConnection& connection, Nic from, Nic to,
                          std::uint64_t number = 0, std::uint32_t queue_pair = 0) const {
    return id(from, to, choose(connection, from, to, number, queue_pair));
  }
  std::uint32_t id(Nic from, Nic to, std::uint32_t path) const {
    return routes_->id(leaf_of_[from], leaf_of_[to], path);
  }
  KnownPath path_by_id(std::uint32_t id) const { return routes_->by_id(id); }
  Routing::Per routes_per() const { return routing_->per; }
  bool one_path() const { return routing_->per == Routing::Per::connection; }
  std::string_view routing() const { return routing_->name; }

  // Returns, for a path with `links` links, the latency of each hop before a link. The hop after
  // the last link has what is left of latency().
  Picoseconds stretch(Nic from, Nic to, int links) const { return latency(from, to) / (links + 1); }
  // Returns the latency from end to end of a path with `links` links, including theirs.
  Picoseconds path_latency(Nic from, Nic to, int links) const {
    return latency(from, to) + links * spec_.link_latency;
  }

 private:
  // NICs of ranks' nodes; those of dedicated servers, where they are not like these; switches.
  static constexpr std::size_t kKinds = 3;
  std::size_t kind_of(Nic nic) const {
    return std::size_t{nic >= first_server_nic_} + std::size_t{nic >= first_switch_nic_};
  }

  Nic first_server_nic_, first_switch_nic_;
  int switches_ = 0;
  std::array<LinkSpeed, kKinds> speed_;
  std::array<std::array<Picoseconds, kKinds>, kKinds> latency_;
  std::uint64_t seed_;
  int nics_per_node_;
  const Routing* routing_;
  QueuePairs queue_pairs_;
  TopologySpec spec_;
  std::unique_ptr<const SwitchRoutes> routes_;  // null: one ideal switch
  std::vector<LinkSpeed> speeds_;               // those that links have; they are few
  std::vector<std::uint32_t> speed_of_link_;    // index into speeds_
  VectorBy<Nic, std::uint32_t> leaf_of_;        // empty: one ideal switch
};

}  // namespace ghostrank
