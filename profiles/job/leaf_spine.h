// The switches between the nodes of a job, with defaults filled in. NICs are connected to leaves;
// every leaf has one link to every spine.
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
  int rails = 1;   // leaves that each node is connected to
  int groups = 1;  // sets of neighbouring nodes with the same leaves
  int spines = 1;
  int ports = 1;          // NICs on the largest leaf
  double uplink_bps = 0;  // of a leaf-spine link, per direction; 0: unlimited

  int leaves() const { return rails * groups; }
  std::int64_t links() const { return std::int64_t{2} * leaves() * spines; }
};

// The nodes that the fabric has room for: at least those of the job, and as many on each router of
// a torus or dragonfly.
int fabric_nodes(const ClusterSpec& cluster);

// Requires a topology with leaves and spines.
LeafSpine leaf_spine_of(const ClusterSpec& cluster);

}  // namespace ghostrank
