// The defaults for leaves and spines: their number and the rate of their links.
#include "profiles/job/leaf_spine.h"

#include <gtest/gtest.h>

#include "tests/profiles/cluster.h"

namespace ghostrank {
namespace {

using test::cluster_of;
using Kind = TopologySpec::Kind;

TEST(LeafSpine, HasThirtyTwoNicsOnALeafAndLinksAsFastAsNics) {
  ClusterSpec cluster = cluster_of(64, 8, Kind::leaf_spine);
  LeafSpine s = leaf_spine_of(cluster);
  EXPECT_EQ(s.leaves(), 16);
  EXPECT_EQ(s.spines, 32);
  EXPECT_EQ(s.uplink_bps, 400e9);
  EXPECT_EQ(s.links(), 2 * 16 * 32);
  cluster.topology.oversubscription = 4;
  s = leaf_spine_of(cluster);
  EXPECT_EQ(s.spines, 8);
  EXPECT_EQ(s.uplink_bps, 400e9);
}

TEST(LeafSpine, HasTwoLeavesAtLeast) {
  EXPECT_EQ(leaf_spine_of(cluster_of(3, 1, Kind::leaf_spine)).leaves(), 2);
  EXPECT_EQ(leaf_spine_of(cluster_of(1, 8, Kind::leaf_spine)).leaves(), 1);
}

TEST(LeafSpine, HasALeafForEveryRailOfThirtyTwoNodes) {
  const LeafSpine s = leaf_spine_of(cluster_of(100, 8, Kind::rail_optimised));
  EXPECT_EQ(s.rails, 8);
  EXPECT_EQ(s.groups, 4);
  EXPECT_EQ(s.ports, 25);
}

// All uplinks of a leaf together carry the rate of its NICs, divided by the oversubscription.
TEST(LeafSpine, DividesTheRateOfTheLargestLeafAmongItsLinks) {
  ClusterSpec cluster = cluster_of(10, 2, Kind::leaf_spine);
  cluster.topology.leaves = 4;
  cluster.topology.spines = 5;
  cluster.topology.oversubscription = 3;
  const LeafSpine s = leaf_spine_of(cluster);
  EXPECT_EQ(s.ports, 6);
  EXPECT_DOUBLE_EQ(s.uplink_bps * 5 * 3, 6 * 400e9);
  cluster.topology.uplink_bps = 1e9;
  EXPECT_EQ(leaf_spine_of(cluster).uplink_bps, 1e9);
}

// Servers take nodes after the others, unless they are colocated with the GPUs.
TEST(LeafSpine, HasPlaceForServers) {
  ClusterSpec cluster = cluster_of(32, 8, Kind::leaf_spine);
  cluster.servers.count = 8;
  EXPECT_EQ(leaf_spine_of(cluster).leaves(), 10);
  cluster.servers.colocated = true;
  EXPECT_EQ(leaf_spine_of(cluster).leaves(), 8);
}

}  // namespace
}  // namespace ghostrank
