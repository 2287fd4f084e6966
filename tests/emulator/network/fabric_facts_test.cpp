// Facts about fabrics without traffic: sizes, diameter and bisection, by closed forms.
#include "emulator/network/fabric_facts.h"

#include <gtest/gtest.h>

#include "emulator/network/switch_routes.h"
#include "profiles/load/files/topology.h"

namespace ghostrank {
namespace {

using Kind = TopologySpec::Kind;
constexpr double kNic = 100e9;

ClusterSpec cluster_of(Kind kind, int nodes, int nics) {
  ClusterSpec cluster;
  cluster.nodes = nodes;
  cluster.nics_per_node = nics;
  cluster.nic.rate_bps = kNic;
  cluster.topology.kind = kind;
  return cluster;
}

FabricFacts facts_of(const ClusterSpec& cluster) {
  return fabric_facts(switches_of(cluster), cluster);
}

TEST(FabricFacts, OfLeavesAndSpines) {
  ClusterSpec cluster = cluster_of(Kind::leaf_spine, 8, 2);
  cluster.topology.leaves = 4;
  cluster.topology.spines = 2;
  for (const double oversubscription : {1.0, 2.0, 8.0}) {
    cluster.topology.oversubscription = oversubscription;
    const FabricFacts facts = facts_of(cluster);
    EXPECT_NEAR(facts.bisection_share, 1 / oversubscription, 1e-9);
    EXPECT_NEAR(facts.bisection_bps, 8 * kNic / oversubscription, 1);
    EXPECT_EQ(facts.diameter, 2);
    EXPECT_EQ(facts.ports, 16 + 2 * 8);
    ASSERT_EQ(facts.layers.size(), 2u);
    EXPECT_EQ(facts.layers[0].name, "leaf");
    EXPECT_EQ(facts.layers[0].ports, 4 + 2);
    EXPECT_EQ(facts.layers[1].switches, 2);
  }
}

// The bisection passes the oversubscribed links between pods and cores.
TEST(FabricFacts, OfAFatTree) {
  ClusterSpec cluster = cluster_of(Kind::fat_tree, 32, 2);
  cluster.topology.pods = 4;
  cluster.topology.leaves = 16;
  cluster.topology.pod_oversubscription = 7;
  const FabricFacts facts = facts_of(cluster);
  EXPECT_NEAR(facts.bisection_share, 1.0 / 7, 1e-9);
  EXPECT_EQ(facts.diameter, 4);
  ASSERT_EQ(facts.cables.size(), 2u);
  EXPECT_EQ(facts.cables[1].tier, "spine-core");
}

// A cut across the longest dimension passes every line of routers along it twice.
TEST(FabricFacts, OfATorus) {
  ClusterSpec cluster = cluster_of(Kind::torus, 2 * 4 * 6, 1);
  cluster.topology.dimensions = {2, 4, 6};
  const FabricFacts facts = facts_of(cluster);
  EXPECT_NEAR(facts.bisection_bps, 2 * 2 * 4 * kNic, 1);
  EXPECT_EQ(facts.diameter, 1 + 2 + 3);
  ASSERT_EQ(facts.layers.size(), 1u);
  EXPECT_EQ(facts.layers[0].name, "router");
  EXPECT_EQ(facts.layers[0].ports, 1 + 1 + 2 + 2);
}

// Of nine groups, four and a half send to the others.
TEST(FabricFacts, OfADragonfly) {
  ClusterSpec cluster = cluster_of(Kind::dragonfly, 72, 1);
  const FabricFacts facts = facts_of(cluster);
  EXPECT_EQ(facts.diameter, 3);
  ASSERT_EQ(facts.cables.size(), 2u);
  EXPECT_EQ(facts.cables[0].tier, "local+");
  EXPECT_EQ(facts.cables[1].count, 36);
  EXPECT_LT(facts.bisection_share, 1);
  cluster.topology.global_bps = kNic / 4;
  EXPECT_LT(facts_of(cluster).bisection_bps, facts.bisection_bps);
}

// Few NICs are on one leaf, and no path between them has a link.
TEST(FabricFacts, OfOneLeafAreThoseOfASearchToo) {
  for (const Kind kind : {Kind::leaf_spine, Kind::fat_tree, Kind::rail_optimised})
    for (const int nics : {1, 4})
      for (const int nodes : {2, 4, 30, 40, 300}) {
        const ClusterSpec cluster = cluster_of(kind, nodes, nics);
        SwitchGraph graph = switches_of(cluster);
        const int diameter = fabric_facts(graph, cluster).diameter;
        if (graph.leaves == 1) {
          EXPECT_EQ(diameter, 0);
        }
        graph.longest = 0;
        EXPECT_EQ(diameter, SwitchRoutes(graph).longest()) << graph.summary;
      }
}

// The job's nodes have a part of the fabric's places.
TEST(FabricFacts, AreThoseOfTheLeavesWithNics) {
  for (const Kind kind : {Kind::leaf_spine, Kind::fat_tree, Kind::rail_optimised})
    for (const auto placement : {TopologySpec::Placement::packed, TopologySpec::Placement::spread})
      for (const int nodes : {1, 2, 16, 17, 32, 33}) {
        ClusterSpec cluster = cluster_of(kind, nodes, 1);
        cluster.topology.places = 64;
        cluster.topology.leaves = 4;
        cluster.topology.pods = kind == Kind::fat_tree ? 2 : 0;
        cluster.topology.placement = placement;
        SwitchGraph graph = switches_of(cluster);
        const int diameter = fabric_facts(graph, cluster).diameter;
        if (placement == TopologySpec::Placement::packed) {
          EXPECT_EQ(diameter, nodes <= 16 ? 0 : nodes <= 32 || kind != Kind::fat_tree ? 2 : 4);
        }
        graph.longest = 0;
        EXPECT_EQ(diameter, SwitchRoutes(graph).longest()) << graph.summary << ' ' << nodes;
      }
}

// Each rail's switch reaches both halves, so separate rails lose no bisection.
TEST(FabricFacts, OfRailsAlone) {
  const FabricFacts facts = facts_of(cluster_of(Kind::rail_only, 4, 2));
  EXPECT_NEAR(facts.bisection_share, 1, 1e-9);
  EXPECT_EQ(facts.diameter, 0);
  EXPECT_EQ(facts.ports, 8);
}

TEST(FabricFacts, CountLinksThatFailed) {
  ClusterSpec cluster = cluster_of(Kind::leaf_spine, 4, 1);
  cluster.topology.leaves = 2;
  cluster.topology.spines = 2;
  cluster.topology.failed = {"leaf0-spine1"};
  const FabricFacts facts = facts_of(cluster);
  EXPECT_EQ(facts.cables[0].failed, 1);
  EXPECT_EQ(facts.ports, 4 + 2 * 3);
  EXPECT_NEAR(facts.bisection_share, 0.5, 1e-9);
}

// Servers with slower NICs are the second half.
TEST(FabricFacts, OfServersHaveTheRateOfTheirNics) {
  ClusterSpec cluster = cluster_of(Kind::leaf_spine, 4, 1);
  cluster.servers.count = 4;
  cluster.servers.nic.rate_bps = kNic / 4;
  const FabricFacts facts = facts_of(cluster);
  EXPECT_EQ(facts.nics, 8);
  EXPECT_NEAR(facts.bisection_bps, kNic, 1);
  EXPECT_NEAR(facts.bisection_share, 0.25, 1e-9);
}

// Dedicated servers have `servers.nics` of their own, whatever a node of GPUs has.
TEST(FabricFacts, CountTheNicsThatServersHave) {
  for (const Kind kind : {Kind::leaf_spine, Kind::rail_optimised, Kind::fat_tree, Kind::rail_only})
    for (const int nics : {1, 2, 4}) {
      ClusterSpec cluster = cluster_of(kind, 4, 4);
      cluster.servers.count = 2;
      cluster.servers.nics = nics;
      cluster.servers.nic.rate_bps = kNic;
      const SwitchGraph graph = switches_of(cluster);
      const FabricFacts facts = fabric_facts(graph, cluster);
      EXPECT_EQ(facts.nics, 16 + 2 * nics) << graph.summary;
      EXPECT_EQ(facts.ports, 16 + 2 * nics + 2 * static_cast<int>(graph.cables.size()))
          << graph.summary;
      if (kind == Kind::leaf_spine) {
        EXPECT_NEAR(facts.bisection_bps, (8 + nics) * kNic, 1) << nics;
      }
      cluster.servers.colocated = true;  // beside the GPUs, with their NICs
      EXPECT_EQ(facts_of(cluster).nics, 16) << graph.summary;
    }
}

// A file need not connect the NICs that a server lacks.
TEST(FabricFacts, OfAFileCountTheNicsThatServersHave) {
  ClusterSpec cluster = cluster_of(Kind::file, 2, 2);
  cluster.servers.count = 1;
  for (const char* server : {"n2", "n2.nic0"}) {
    const SwitchGraph graph =
        parse_topology("n0,a\nn1,a\n" + std::string(server) + ",a\n", "r.csv", cluster);
    const FabricFacts facts = fabric_facts(graph, cluster);
    EXPECT_EQ(facts.nics, 5);
    EXPECT_EQ(facts.ports, 5);
  }
}

// A ring of four switches: two cables cross the middle.
TEST(FabricFacts, OfAFile) {
  const ClusterSpec cluster = cluster_of(Kind::file, 4, 1);
  const SwitchGraph graph = parse_topology(
      "n0,a\nn1,b\nn2,c\nn3,d\na,b,10Gbps\nb,c,10Gbps\nc,d,10Gbps\nd,a,10Gbps\n", "r.csv", cluster);
  const FabricFacts facts = fabric_facts(graph, cluster);
  EXPECT_NEAR(facts.bisection_bps, 20e9, 1);
  EXPECT_EQ(facts.diameter, 2);
}

}  // namespace
}  // namespace ghostrank
