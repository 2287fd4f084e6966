// Where emulated nodes should lie: on hosts, with the least between them, and on the places of a
// fabric, with the fewest links crossed.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "emulator/placement/on_fabric.h"
#include "emulator/placement/partition.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

std::vector<NodeEdge> random_edges(std::mt19937& random, int nodes) {
  std::vector<NodeEdge> edges;
  for (int a = 0; a < nodes; ++a)
    for (int b = 0; b < nodes; ++b)
      if (a != b && random() % 3 == 0)
        edges.push_back({a, b, static_cast<double>(1 + random() % 1000)});
  return edges;
}

Parts in_blocks(const std::vector<int>& sizes) {
  Parts parts;
  for (std::size_t p = 0; p < sizes.size(); ++p)
    parts.insert(parts.end(), static_cast<std::size_t>(sizes[p]), static_cast<int>(p));
  return parts;
}

double least_of_all(const NodeGraph& graph, Parts parts) {
  double least = std::numeric_limits<double>::infinity();
  std::ranges::sort(parts);
  do {
    least = std::min(least, weight_between(graph, parts));
  } while (std::next_permutation(parts.begin(), parts.end()));
  return least;
}

TEST(Partition, OfSmallGraphsIsTheLeastThatThereIs) {
  std::mt19937 random(5);
  const std::vector<std::vector<int>> sizes{{4, 4}, {3, 3, 2}, {5, 2, 1}, {2, 2, 2, 2}, {3, 3, 3}};
  for (int i = 0; i < 100; ++i) {
    const std::vector<int>& wanted = sizes[static_cast<std::size_t>(i) % sizes.size()];
    const int nodes = std::accumulate(wanted.begin(), wanted.end(), 0);
    const NodeGraph graph(nodes, random_edges(random, nodes));
    const Parts start = in_blocks(wanted);
    const Parts found = least_between(graph, wanted, {start});
    EXPECT_DOUBLE_EQ(weight_between(graph, found), least_of_all(graph, start)) << i;
    for (std::size_t p = 0; p < wanted.size(); ++p)
      EXPECT_EQ(std::ranges::count(found, static_cast<int>(p)), wanted[p]) << i;
  }
}

TEST(Partition, IsNoWorseThanItsStartsAndTheSameEachTime) {
  std::mt19937 random(9);
  const NodeGraph graph(60, random_edges(random, 60));
  const std::vector<int> sizes{20, 20, 20};
  const Parts start = in_blocks(sizes);
  const Parts found = least_between(graph, sizes, {start});
  EXPECT_LE(weight_between(graph, found), weight_between(graph, start));
  EXPECT_EQ(found, least_between(graph, sizes, {start}));
}

// Cliques of eight, whose members lie far from each other in the order of numbers.
TEST(Partition, FindsWhatBelongsTogether) {
  constexpr int kCliques = 16, kMembers = 8;
  std::vector<NodeEdge> edges;
  for (int c = 0; c < kCliques; ++c)
    for (int i = 0; i < kMembers; ++i) {
      for (int j = 0; j < i; ++j) edges.push_back({i * kCliques + c, j * kCliques + c, 10});
      edges.push_back({i * kCliques + c, i * kCliques + (c + 1) % kCliques, 1});
    }
  const NodeGraph graph(kCliques * kMembers, edges);
  const std::vector<int> sizes(4, 32);
  const Parts found = least_between(graph, sizes, {in_blocks(sizes)});
  // Four neighbouring cliques a part: each part borders on two others, by eight edges each.
  EXPECT_EQ(weight_between(graph, found), 4 * 8);
}

TEST(Partition, KeepsAStartThatNothingBeats) {
  std::vector<NodeEdge> edges;
  for (int n = 0; n + 1 < 16; ++n) edges.push_back({n, n + 1, 1});
  const NodeGraph graph(16, edges);
  const std::vector<int> sizes{4, 4, 4, 4};
  EXPECT_EQ(least_between(graph, sizes, {in_blocks(sizes)}), in_blocks(sizes));
}

JobSpec on_leaves(int nodes, int places, int leaves) {
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  TopologySpec& topology = job.spec.cluster.topology;
  topology.kind = TopologySpec::Kind::leaf_spine;
  topology.places = places;
  topology.leaves = leaves;
  topology.spines = 1;
  return job.spec;
}

std::vector<NicStream> random_streams(std::mt19937& random, int nodes) {
  std::vector<NicStream> streams;
  for (const NodeEdge& e : random_edges(random, nodes))
    streams.push_back({e.a, e.b, 0, 0, e.weight});
  return streams;
}

TEST(OnAFabric, SmallJobsCrossTheFewestLinksThatTheyCan) {
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    const int nodes = 5 + i % 2, places = 6;
    const PlaceDistances distances(on_leaves(nodes, places, i % 3 == 0 ? 2 : 3));
    ASSERT_EQ(distances.places(), places);
    const std::vector<NicStream> streams = random_streams(random, nodes);
    Places packed(static_cast<std::size_t>(nodes));
    std::iota(packed.begin(), packed.end(), 0);
    const Places found = least_crossed(streams, distances, {packed});
    Places all(places);
    std::iota(all.begin(), all.end(), 0);
    double least = std::numeric_limits<double>::infinity();
    do {
      least = std::min(least, crossed(streams, distances, {all.begin(), all.begin() + nodes}));
    } while (std::next_permutation(all.begin(), all.end()));
    EXPECT_DOUBLE_EQ(crossed(streams, distances, found), least) << i;
    Places sorted = found;
    std::ranges::sort(sorted);
    EXPECT_EQ(std::ranges::unique(sorted).size(), 0u) << "a place holds one node";
  }
}

TEST(OnAFabric, DistancesAreThoseOfItsSwitches) {
  const PlaceDistances distances(on_leaves(4, 8, 4));
  EXPECT_EQ(distances.links(0, 0, 1, 0), 0) << "at one leaf";
  EXPECT_EQ(distances.links(0, 0, 2, 0), 2) << "up and down";
}

}  // namespace
}  // namespace ghostrank
