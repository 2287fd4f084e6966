// The switches between nodes that a job describes, with what it leaves open filled in: leaves, to
// which NICs are connected, and spines, to each of which every leaf has one link.
//
//   leaf_spine       all NICs of a node on one leaf; neighbouring nodes share it
//   rail_optimised   NIC i of a node on the leaf of rail i; neighbouring nodes share such leaves
//
// Threading: pure functions.
#pragma once

#include <cstdint>

#include "profiles/job/job.h"

namespace ghostrank {

struct LeafSpine {
  int rails = 1;   // leaves that a node is connected to
  int groups = 1;  // of neighbouring nodes with the same leaves
  int spines = 1;
  int ports = 1;          // NICs of the largest leaf
  double uplink_bps = 0;  // of each link between a leaf and a spine, each direction; 0: unlimited

  int leaves() const { return rails * groups; }
  std::int64_t links() const { return std::int64_t{2} * leaves() * spines; }
};

// For a cluster whose topology has leaves and spines.
LeafSpine leaf_spine_of(const ClusterSpec& cluster);

}  // namespace ghostrank
