// The switches between the nodes of a job and the cables between them, as data. A kind of topology
// is a function that fills in these lists; routes are found in them (emulator/network/
// switch_routes.h), so a further kind needs no other code.
//
// clang-format off
//
//   leaf_spine       NIC ─ leaf ══ every spine                     all NICs of a node on one leaf
//   rail_optimised   the same, NIC i of a node on the leaf of rail i
//   rail_only        NIC ─ switch of rail i                        rails do not meet
//   fat_tree         NIC ─ leaf ══ every spine of the pod ══ the cores of the spine's plane
//   torus, dragonfly  NIC ─ router ══ routers                      see direct_fabrics.h
//   a file           any switches and cables (profiles/load/files/topology.h)
//
// clang-format on
//
// Each node takes a place of the fabric. The fabric may have more places than the job has nodes;
// the placement chooses among them.
//
// Units: rates in bits per second of each direction, 0: unlimited. Threading: plain values, pure
// functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/common/number.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct SwitchGraph {
  struct Switch {
    std::string name;  // "leaf0"
    Node near;         // a node close to it
    int nics = 0;      // NICs of the job that are connected to it
    std::uint32_t pod = 0;
  };
  // Two links, one for each direction. `a` is nearer to the NICs than `b`, if either is.
  struct Cable {
    std::uint32_t a = 0, b = 0;
    double bps = 0;
    bool failed = false;
  };
  // Cables [first, first + count), between two layers of switches; names of their links.
  struct Tier {
    std::string up, down;
    std::uint32_t first = 0, count = 0;
  };
  std::vector<Switch> switches;  // those with NICs come first
  std::uint32_t leaves = 0;      // number of switches with ports for NICs
  std::vector<Cable> cables;
  std::vector<Tier> tiers;
  VectorBy<Nic, std::uint32_t> leaf_of;  // by number of a NIC, also of those that servers lack
  int places = 0;                        // nodes that the fabric has room for
  // The most links on a shortest path between two leaves with NICs; 0: not known, find it.
  int longest = 0;
  bool connected = true;  // false: some leaves have no path between them on purpose
  std::string summary;    // "leaf_spine: 4 leaves, 8 spines"
};

// Builds the switches of `cluster`, whose topology is not nonblocking; failed and degraded links
// are marked. Throws Error(usage) if a link that fails does not exist, or if NICs cannot reach each
// other.
SwitchGraph switches_of(const ClusterSpec& cluster);

// Numbers of NICs have room for nics_per_node of every node. False for those that a dedicated
// server, which may have fewer, lacks.
bool has_nic(const ClusterSpec& cluster, Nic nic);

// "leaf0-spine1"; the further ones of parallel cables are called "leaf0-spine1.2" and so on. The
// link the other way is called "spine1-leaf0", "spine1-leaf0.2" and so on.
std::string cable_name(const SwitchGraph& graph, std::uint32_t cable);
std::string cable_name_back(const SwitchGraph& graph, std::uint32_t cable);

// Cables by the names of their links.
class CableNames {
 public:
  explicit CableNames(const SwitchGraph& graph);
  // The cables with a link of this name: none, or several whose switches have equal names.
  std::vector<std::uint32_t> find(const std::string& name) const;
  std::vector<std::string> all() const;  // sorted; of links away from `a`

 private:
  std::multimap<std::string, std::uint32_t> there_, back_;
};

// The sizes of a fat tree of three tiers, with defaults filled in.
struct FatTree {
  int pods = 1, leaves = 1, spines = 1, cores = 1;  // leaves and spines of a pod; cores of a plane
  int ports = 1;                                    // NICs on the largest leaf
  double leaf_bps = 0, spine_bps = 0;               // of a leaf's and a spine's cables upwards
};
FatTree fat_tree_of(const ClusterSpec& cluster);

}  // namespace ghostrank
