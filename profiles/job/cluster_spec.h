// The cluster that a job emulates: its nodes, NICs, servers and the network between them.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "profiles/units.h"

namespace ghostrank {

struct NicSpec {
  double rate_bps = 400e9;  // 0: unlimited
  Picoseconds latency = 2 * kPicosPerMicro;
};

// Machines for the helpers of schemes: nodes of their own, numbered after all others, or, if
// `colocated`, shared with the GPUs of a node.
struct ServerSpec {
  int count = 0;
  bool colocated = false;                             // no nodes of their own
  const struct ServerPlacement* placement = nullptr;  // null: the built-in placement
  int nics = 1;
  NicSpec nic;
  // Of each machine that runs servers, also of one with GPUs. Rates in GB/s; 0: takes no time.
  int cores = 8;
  double add_GBps = 20;        // at which one core adds or copies received data
  double optimizer_GBps = 10;  // at which one core steps weights
  double memory_GBps = 80;     // of the memory, which all cores share
  // The server at place `fails` stops `fails_at` after the start of the measured iterations; -1:
  // none stops.
  int fails = -1;
  Picoseconds fails_at = 0;

  // The number of places for helpers, and how many of them share a node with GPUs (AtServers).
  int places(int rank_nodes) const;
  int beside(int rank_nodes) const;
};

// The network between NICs. Kinds other than nonblocking model the links between switches
// (switches.h).
struct TopologySpec {
  enum class Kind : std::uint8_t {
    nonblocking,
    leaf_spine,
    rail_optimised,
    rail_only,
    fat_tree,
    torus,
    dragonfly,
    file
  };
  Kind kind = Kind::nonblocking;
  int places = 0;               // nodes that the fabric has room for; 0: as many as the job has
  int leaves = 0, spines = 0;   // 0: derived from the size of the cluster
  int pods = 0, cores = 0;      // of a fat tree of three tiers, whose `spines` are those of a pod
  double oversubscription = 1;  // rates of a leaf's NICs over those of its up-links
  double pod_oversubscription = 1;  // rates of a spine's links down over those of its links up
  double uplink_bps = -1;           // of a leaf; < 0: from the oversubscription; 0: unlimited
  std::vector<int> dimensions;      // of a torus: routers along each
  int groups = 0, routers = 0,
      global_links = 0;                   // of a dragonfly; see direct_fabrics.h; 0: derived
  double link_bps = -1, global_bps = -1;  // of either; < 0: a NIC's rate; as link_bps; 0: unlimited
  enum class Placement : std::uint8_t { packed, spread, random, file };
  Placement placement = Placement::packed;  // of the job's nodes on the fabric's places
  std::uint64_t seed = 1;                   // of a random placement
  std::vector<int> place_of_node;           // of a file: by node
  std::vector<std::string> failed;          // links, by name
  std::vector<std::pair<std::string, double>> degraded;  // links, and their rates
  std::shared_ptr<const struct SwitchGraph> file;        // what a file describes
  Picoseconds link_latency = 0;                          // per link, in addition to the NIC's
  Picoseconds flowlet_gap = 50 * kPicosPerMicro;         // see Routing::Per
  const struct Routing* routing = nullptr;               // null: the topology's default
};

struct ClusterSpec {
  int nodes = 1;
  int gpus_per_node = 8;
  int nics_per_node = 8;
  NicSpec nic;
  // Rates of NICs that change in time, at most nic.rate_bps each; null: none change.
  std::shared_ptr<const class NicRates> nic_rates;
  NicSpec intra_node{3600e9, 1 * kPicosPerMicro};
  // Links between the GPUs of a node; null: all are alike. intra_node.rate_bps is then that of a
  // GPU's port for messages to GPUs that it has no link to.
  std::shared_ptr<const struct NodeLinks> links;
  // Numbered after the GPUs' nodes, with the same NICs; their ranks do not train.
  int storage_nodes = 0;
  ServerSpec servers;
  TopologySpec topology;
  // The node of every block of gpus_per_node ranks, if some nodes have no block; empty: node i has
  // block i.
  std::vector<Node> node_of_block;
  int gpus() const { return nodes * gpus_per_node; }
  int rank_nodes() const { return nodes + storage_nodes; }
  int server_nodes() const { return servers.colocated ? 0 : servers.count; }
  int all_nodes() const { return rank_nodes() + server_nodes(); }
  Node node_of(WorldRank rank) const {
    const int block = rank.value() / gpus_per_node;
    return node_of_block.empty() ? Node(block) : node_of_block[static_cast<std::size_t>(block)];
  }
};

}  // namespace ghostrank
