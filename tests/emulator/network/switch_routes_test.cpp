// Shortest paths through switches: numbers, order, links that fail.
#include "emulator/network/switch_routes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "emulator/network/five_tuple.h"
#include "emulator/network/topology.h"
#include "profiles/error.h"
#include "profiles/load/files/topology.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

ClusterSpec tree_of(int pods, int leaves, int spines, int cores, int nodes) {
  ClusterSpec cluster;
  cluster.nodes = nodes;
  cluster.nics_per_node = 1;
  cluster.nic.rate_bps = 100e9;
  cluster.topology.kind = TopologySpec::Kind::fat_tree;
  cluster.topology.pods = pods;
  cluster.topology.leaves = leaves;
  cluster.topology.spines = spines;
  cluster.topology.cores = cores;
  return cluster;
}

// Checks that every number gives another path, and that its links join the two leaves.
void expect_paths(const SwitchRoutes& routes, std::uint32_t from, std::uint32_t to,
                  std::uint32_t paths, int links) {
  const SwitchGraph& graph = routes.graph();
  const auto cables = static_cast<std::uint32_t>(graph.cables.size());
  ASSERT_EQ(routes.paths(from, to), paths);
  EXPECT_EQ(routes.hops(from, to), links);
  std::vector<Picoseconds> of_link;
  checking::Dice dice(7);
  for (std::uint32_t link = 0; link < 2 * cables; ++link)
    of_link.push_back(static_cast<Picoseconds>(dice.below(1000)));
  Picoseconds most = 0;
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint32_t n = 0; n < paths; ++n) {
    const Path path = routes.path(from, to, n);
    ASSERT_EQ(path.links, links);
    std::uint32_t at = from;
    Picoseconds sum = 0;
    for (int i = 0; i < path.links; ++i) {
      sum += of_link[path.link[i]];
      const SwitchGraph::Cable& cable = graph.cables[path.link[i] % cables];
      EXPECT_FALSE(cable.failed);
      const bool up = path.link[i] < cables;
      ASSERT_EQ(at, up ? cable.a : cable.b);
      at = up ? cable.b : cable.a;
    }
    EXPECT_EQ(at, to);
    most = std::max(most, sum);
    seen.insert({path.link.begin(), path.link.begin() + path.links});
    const std::uint32_t id = routes.id(from, to, n);
    const KnownPath known = routes.by_id(id);
    ASSERT_EQ(known.links(), path.links);
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(links); ++i)
      EXPECT_EQ(known.link(i), path.link[i]);
    EXPECT_EQ(routes.id(from, to, n), id);
  }
  EXPECT_EQ(seen.size(), paths);
  EXPECT_EQ(routes.most_toward(to, of_link)[from], most);
}

TEST(Routes, OfAFatTreeGoThroughSpinesInAPodAndCoresBetweenPods) {
  const SwitchRoutes routes(switches_of(tree_of(2, 4, 3, 6, 8)));
  EXPECT_EQ(routes.longest(), 4);
  expect_paths(routes, 0, 1, 3, 2);
  expect_paths(routes, 0, 3, 3 * 2, 4);
  EXPECT_EQ(routes.paths(1, 1), 0u);
}

// As many as the orders of the steps along the dimensions; both ways where half a dimension lies
// between.
TEST(Routes, OfATorusTakeTheDimensionsInAnyOrder) {
  ClusterSpec cluster = tree_of(0, 0, 0, 0, 40);
  cluster.topology = {};
  cluster.topology.kind = TopologySpec::Kind::torus;
  cluster.topology.dimensions = {4, 5, 2};
  const SwitchRoutes routes(switches_of(cluster));
  EXPECT_EQ(routes.longest(), 2 + 2 + 1);
  expect_paths(routes, 0, 1, 1, 1);
  expect_paths(routes, 0, 2, 2, 2);
  expect_paths(routes, 0, 1 + 4 * 3, 3, 1 + 2);              // backwards along y
  expect_paths(routes, 39, 39 - 2 - 4 * 2 - 20, 2 * 30, 5);  // 5! / (2! 2! 1!)
}

TEST(Routes, OfADragonflyTakeOneCableBetweenGroups) {
  ClusterSpec cluster = tree_of(0, 0, 0, 0, 72);
  cluster.topology = {};
  cluster.topology.kind = TopologySpec::Kind::dragonfly;
  const SwitchGraph graph = switches_of(cluster);
  const SwitchRoutes routes(graph);
  EXPECT_EQ(routes.longest(), 3);
  expect_paths(routes, 0, 3, 1, 1);
  // Group 0's ports 0 and 1, of its router 0, lead to groups 1 and 2.
  expect_paths(routes, 0, 4 + 3, 1, 1);
  for (std::uint32_t from = 0; from < 36; ++from)
    for (std::uint32_t to = 0; to < 36; ++to) EXPECT_LE(routes.hops(from, to), 3);
}

TEST(Routes, AvoidLinksThatFailed) {
  ClusterSpec cluster = tree_of(2, 4, 3, 6, 8);
  cluster.topology.failed = {"leaf0.0-spine0.1", "spine1.0-core1"};
  const SwitchRoutes routes(switches_of(cluster));
  expect_paths(routes, 0, 1, 2, 2);
  expect_paths(routes, 1, 0, 2, 2);
  expect_paths(routes, 0, 3, 1 + 2, 4);
}

TEST(Routes, OfAFileAreShortest) {
  ClusterSpec cluster;
  cluster.nodes = 4;
  cluster.nics_per_node = 1;
  // A ring of four switches: two ways to the opposite one.
  const SwitchRoutes routes(parse_topology(
      "n0,a\nn1,b\nn2,c\nn3,d\na,b,1Gbps\nb,c,1Gbps\nc,d,1Gbps\nd,a,1Gbps\n", "r.csv", cluster));
  EXPECT_EQ(routes.longest(), 2);
  expect_paths(routes, 0, 1, 1, 1);
  expect_paths(routes, 0, 2, 2, 2);
}

// A chain of switches, each joined to the next by three cables. Takes long: ctest's routes_long.
TEST(Routes, DISABLED_MoreThanCanBeKeptAreRefusedAndTheOthersAreStillKnown) {
  SwitchGraph graph;
  graph.switches.resize(Path::kMost + 1);
  graph.leaves = 2;
  graph.longest = Path::kMost;
  const auto along = [](std::uint32_t at) {
    return at == 0 ? 0u : at == Path::kMost ? 1u : at + 1;
  };
  for (std::uint32_t at = 0; at < Path::kMost; ++at)
    for (int cable = 0; cable < 3; ++cable) graph.cables.push_back({along(at), along(at + 1)});
  const SwitchRoutes routes(graph);
  constexpr std::uint32_t kMost = SwitchRoutes::kMostIds / 4;  // paths as long as these
  ASSERT_GT(routes.paths(0, 1), kMost);
  for (std::uint32_t number = 0; number < kMost; ++number) routes.id(0, 1, number);
  for (int again = 0; again < 2; ++again) {
    try {
      routes.id(0, 1, kMost);
      ADD_FAILURE() << "an id too many";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_EQ(std::string(error.what()).find("cluster.topology: messages take more than "), 0u);
    }
  }
  EXPECT_EQ(routes.by_id(routes.id(0, 1, kMost - 1)).links(), Path::kMost);
}

// How many links the shortest paths between two leaves have, and how many paths there are.
std::pair<int, std::uint32_t> searched(const SwitchGraph& graph, std::uint32_t from,
                                       std::uint32_t to) {
  std::vector<std::uint64_t> ways(graph.switches.size());
  ways[from] = 1;
  for (int links = 1; links <= Path::kMost; ++links) {
    std::vector<std::uint64_t> next(ways.size());
    for (const SwitchGraph::Cable& cable : graph.cables) {
      if (cable.failed) continue;
      next[cable.b] += ways[cable.a];
      next[cable.a] += ways[cable.b];
    }
    ways = next;
    if (ways[to] > 0) return {links, static_cast<std::uint32_t>(ways[to])};
  }
  return {0, 0};
}

TEST(Routes, OfRandomTreesWithFailedLinksAreAllShortestPaths) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    checking::Dice dice(seed);
    const int pods = static_cast<int>(1 + dice.below(3));
    const int spines = static_cast<int>(1 + dice.below(3));
    const int leaves = pods * static_cast<int>(1 + dice.below(3));
    ClusterSpec cluster =
        tree_of(pods, leaves, spines, spines * static_cast<int>(1 + dice.below(2)), 2 * leaves);
    SwitchGraph graph = switches_of(cluster);
    for (SwitchGraph::Cable& cable : graph.cables) cable.failed = dice.below(8) == 0;
    graph.longest = 0;
    const SwitchRoutes routes(graph);
    for (std::uint32_t from = 0; from < graph.leaves; ++from)
      for (std::uint32_t to = 0; to < graph.leaves; ++to) {
        if (from == to) continue;
        const auto [links, paths] = searched(graph, from, to);
        expect_paths(routes, from, to, paths, links);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << from << " to " << to;
      }
  }
}

TEST(Topology, NamesTiersAndLinksOfAFatTree) {
  testing::SmallJob job(8, 1, FabricKind::virtual_time);
  job.spec.cluster = tree_of(2, 4, 3, 6, 8);
  const Topology topology(job.spec);
  ASSERT_EQ(topology.tiers().size(), 4u);
  EXPECT_EQ(topology.tiers()[1].name, "spine-core");
  EXPECT_EQ(topology.tiers()[2].name, "core-spine");
  EXPECT_EQ(topology.tiers()[1].count, 2u * 3 * 2);
  EXPECT_EQ(topology.link_name(0), "leaf0.0-spine0.0");
  EXPECT_EQ(topology.link_name(topology.links() / 2), "spine0.0-leaf0.0");
  EXPECT_EQ(topology.lookahead(), topology.own().latency / 5);
}

TEST(FiveTuple, HasThePortOfItsQueuePairsAndTheHashOfItsFields) {
  EXPECT_EQ(roce_source_port(0x11, 0x12), 0xc132);
  EXPECT_EQ(roce_source_port(0xffffff, 0xffffff), roce_source_port(0xffffff, 0xffffff) | 0xc000);
  const std::string check = "123456789";
  EXPECT_EQ(crc32({reinterpret_cast<const std::uint8_t*>(check.data()), check.size()}), 0xcbf43926);
}

// Eight flows on eight paths: with nearly every seed the hash leaves some paths empty.
TEST(FiveTuple, MakesFlowsCollide) {
  testing::SmallJob job(16, 1, FabricKind::virtual_time);
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = 2;
  job.spec.cluster.topology.spines = 8;
  int most = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    job.spec.run.seed = seed;
    const Topology topology(job.spec);
    std::set<std::uint32_t> used;
    for (int i = 0; i < 8; ++i)
      used.insert(topology.choose({0, 0, WorldRank(i), WorldRank(8 + i)}, Nic(i), Nic(8 + i)));
    EXPECT_GT(used.size(), 1u);
    most += used.size() < 8;
  }
  EXPECT_GE(most, 15);  // by chance 8!/8^8, or 0.24 %, have none empty
}

TEST(Topology, OfRailsAloneHasNoPathBetweenThem) {
  testing::SmallJob job(2, 2, FabricKind::virtual_time);
  job.spec.cluster.topology.kind = TopologySpec::Kind::rail_only;
  const Topology topology(job.spec);
  EXPECT_EQ(topology.paths(Nic(0), Nic(2)), 0u);
  EXPECT_THROW(topology.paths(Nic(0), Nic(3)), Error);
}

}  // namespace
}  // namespace ghostrank
