// Fabrics whose switches (routers) all have ports for NICs: tori and dragonflies.
//
//   torus       a grid of routers; each has a cable to the next one in every dimension, the last
//               one to the first
//   dragonfly   groups of routers (Kim, Dally, Scott and Abts, ISCA 2008): each router has a cable
//               to all others of its group; groups have as many cables to each other group
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

struct SwitchGraph;

inline constexpr int kMostDimensions = 6;

// The sizes of a dragonfly, with defaults filled in. What the job leaves open is such that a router
// has as many cables to other groups as NICs, and half as many as to its own group.
struct Dragonfly {
  int groups = 1, routers = 1;  // routers of a group
  int global_links = 0;         // ports of a router for cables to other groups
  int between() const {         // cables between two groups; 0: too few ports
    return groups < 2 ? 0 : static_cast<int>(std::int64_t{routers} * global_links / (groups - 1));
  }
};
// `nodes`: those that the fabric must have room for.
Dragonfly dragonfly_of(const ClusterSpec& cluster, int nodes);

// Routers of a torus or dragonfly with room for so many nodes; 0: another kind of fabric.
std::int64_t routers_of(const ClusterSpec& cluster, int nodes);
// Links between them, both directions.
std::int64_t links_between_routers(const ClusterSpec& cluster);

// The routers and cables; no NIC is connected yet.
SwitchGraph torus_of(const ClusterSpec& cluster);
SwitchGraph dragonfly_graph(const ClusterSpec& cluster);

}  // namespace ghostrank
