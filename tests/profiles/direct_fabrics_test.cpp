// Tori and dragonflies as routers and cables: closed forms, and what every one of them has.
#include "profiles/job/direct_fabrics.h"

#include <algorithm>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "profiles/job/leaf_spine.h"
#include "profiles/job/switches.h"
#include "tests/profiles/cluster.h"

namespace ghostrank {
namespace {

using test::cluster_of;
using Kind = TopologySpec::Kind;

ClusterSpec torus_with(int nodes, std::vector<int> dimensions) {
  ClusterSpec cluster = cluster_of(nodes, 1, Kind::torus);
  cluster.topology.dimensions = std::move(dimensions);
  return cluster;
}

std::vector<int> cables_of(const SwitchGraph& graph) {
  std::vector<int> of(graph.switches.size());
  for (const SwitchGraph::Cable& cable : graph.cables) {
    ++of[cable.a];
    ++of[cable.b];
  }
  return of;
}

TEST(Torus, HasACableInEveryDirectionAndHalfOfEachDimensionAsItsDiameter) {
  const ClusterSpec cluster = torus_with(60, {4, 5, 3});
  const SwitchGraph graph = switches_of(cluster);
  EXPECT_EQ(graph.summary, "torus: 4 x 5 x 3 routers");
  EXPECT_EQ(graph.switches.size(), 60u);
  EXPECT_EQ(graph.cables.size(), 3u * 60u);
  EXPECT_EQ(links_between_routers(cluster), 2 * 3 * 60);
  for (const int cables : cables_of(graph)) EXPECT_EQ(cables, 6);
  EXPECT_EQ(graph.longest, 2 + 2 + 1);
  ASSERT_EQ(graph.tiers.size(), 3u);
  EXPECT_EQ(graph.tiers[1].up, "y+");
  EXPECT_EQ(cable_name(graph, 3), "router3.0.0-router0.0.0");
  EXPECT_EQ(cable_name(graph, 60), "router0.0.0-router0.1.0");
}

// Two routers have one cable between them, and one alone has none.
TEST(Torus, HasNoCableTwice) {
  const SwitchGraph graph = switches_of(torus_with(8, {2, 1, 4}));
  EXPECT_EQ(graph.cables.size(), 4u + 8u);
  for (const int cables : cables_of(graph)) EXPECT_EQ(cables, 3);
  EXPECT_EQ(graph.longest, 1 + 2);
}

TEST(Torus, FillsItsRoutersInOrder) {
  ClusterSpec cluster = torus_with(6, {2, 2});
  EXPECT_EQ(fabric_nodes(cluster), 8);  // two on each router
  const SwitchGraph packed = switches_of(cluster);
  EXPECT_EQ(packed.leaf_of[Nic(1)], 0u);
  EXPECT_EQ(packed.leaf_of[Nic(5)], 2u);
  EXPECT_EQ(packed.switches[3].nics, 0);
  cluster.topology.placement = TopologySpec::Placement::spread;
  const SwitchGraph spread = switches_of(cluster);
  EXPECT_EQ(spread.leaf_of[Nic(3)], 3u);
  EXPECT_EQ(spread.leaf_of[Nic(4)], 0u);
}

// p = h = 2, a = 4: nine groups, one cable between any two (Kim et al., figure 5).
TEST(Dragonfly, IsBalancedWhereTheJobLeavesItOpen) {
  const ClusterSpec cluster = cluster_of(72, 1, Kind::dragonfly);
  const Dragonfly size = dragonfly_of(cluster, 72);
  EXPECT_EQ(size.routers, 4);
  EXPECT_EQ(size.groups, 9);
  EXPECT_EQ(size.global_links, 2);
  EXPECT_EQ(size.between(), 1);
  const SwitchGraph graph = switches_of(cluster);
  EXPECT_EQ(graph.summary, "dragonfly: 9 groups of 4 routers, 1 cable between two groups");
  EXPECT_EQ(graph.cables.size(), 9u * 6 + 36);
  EXPECT_EQ(graph.longest, 3);
  for (const int cables : cables_of(graph)) EXPECT_EQ(cables, 3 + 2);
  for (const SwitchGraph::Switch& s : graph.switches) EXPECT_EQ(s.nics, 2);
}

TEST(Dragonfly, OfAnySizeJoinsAllGroupsAlikeWithinThePortsOfARouter) {
  checking::Dice dice(3);
  int several = 0;
  for (int i = 0; i < 300; ++i) {
    ClusterSpec cluster = cluster_of(static_cast<int>(1 + dice.below(200)),
                                     static_cast<int>(1 + dice.below(4)), Kind::dragonfly);
    if (dice.below(2) == 0) cluster.topology.groups = static_cast<int>(1 + dice.below(12));
    if (dice.below(2) == 0) cluster.topology.routers = static_cast<int>(1 + dice.below(9));
    if (dice.below(2) == 0) cluster.topology.global_links = static_cast<int>(8 + dice.below(9));
    const Dragonfly size = dragonfly_of(cluster, cluster.nodes);
    if (size.groups > 1 && size.between() == 0) continue;  // refused when a job is read
    SCOPED_TRACE(std::to_string(size.groups) + " groups of " + std::to_string(size.routers));
    const SwitchGraph graph = switches_of(cluster);
    EXPECT_EQ(std::ssize(graph.switches), std::int64_t{size.groups} * size.routers);
    EXPECT_EQ(2 * std::ssize(graph.cables), links_between_routers(cluster));
    EXPECT_GE(graph.places, cluster.nodes);
    std::vector<int> global(graph.switches.size());
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> between;
    for (const SwitchGraph::Cable& cable : graph.cables) {
      const std::uint32_t a = graph.switches[cable.a].pod, b = graph.switches[cable.b].pod;
      if (a == b) continue;
      ++global[cable.a];
      ++global[cable.b];
      ++between[{a, b}];
    }
    EXPECT_LE(*std::max_element(global.begin(), global.end()), size.global_links);
    EXPECT_EQ(std::ssize(between), std::int64_t{size.groups} * (size.groups - 1) / 2);
    for (const auto& [groups, cables] : between) EXPECT_EQ(cables, size.between());
    several += size.between() > 1;
  }
  EXPECT_GT(several, 50);
}

}  // namespace
}  // namespace ghostrank
