// Clusters whose NICs have 400 Gb/s, for the tests of fabrics.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank::test {

inline ClusterSpec cluster_of(int nodes, int nics, TopologySpec::Kind kind) {
  ClusterSpec cluster;
  cluster.nodes = nodes;
  cluster.nics_per_node = nics;
  cluster.nic.rate_bps = 400e9;
  cluster.topology.kind = kind;
  return cluster;
}

}  // namespace ghostrank::test
