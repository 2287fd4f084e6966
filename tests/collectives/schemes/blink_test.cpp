// Blink's trees beside the least cuts of their graphs, and its schedules beside the links' rates.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "collectives/node_links.h"
#include "collectives/schedule.h"
#include "collectives/schemes/blink/packing.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/nodes.h"

namespace ghostrank {
namespace {

using testing::call;

LinkGraph graph_of(const NodeLinks& links) { return {links.gpus, links.bps}; }

// The most that flows from one vertex to another: augmenting paths.
double max_flow(const LinkGraph& graph, int from, int to) {
  std::vector<double> room = graph.rate;
  const int n = graph.n;
  for (double flow = 0;;) {
    std::vector<int> before(n, -1), reached{from};
    before[from] = from;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (int v = 0; v < n; ++v)
        if (before[v] == -1 && room[reached[i] * n + v] > 1) {
          before[v] = reached[i];
          reached.push_back(v);
        }
    if (before[to] == -1) return flow;
    double most = std::numeric_limits<double>::infinity();
    for (int v = to; v != from; v = before[v]) most = std::min(most, room[before[v] * n + v]);
    for (int v = to; v != from; v = before[v]) {
      room[before[v] * n + v] -= most;
      room[v * n + before[v]] += most;
    }
    flow += most;
  }
}

double least_cut(const LinkGraph& graph, int root) {
  double least = std::numeric_limits<double>::infinity();
  for (int v = 0; v < graph.n; ++v)
    if (v != root) least = std::min(least, max_flow(graph, root, v));
  return least;
}

// Over all partitions: the rate between the parts over their number less one.
double least_partition(const LinkGraph& graph) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> part(graph.n);
  const std::function<void(int, int)> place = [&](int v, int parts) {
    if (v < graph.n) {
      for (part[v] = 0; part[v] <= parts; ++part[v]) place(v + 1, std::max(parts, part[v] + 1));
      return;
    }
    if (parts < 2) return;
    double between = 0;
    for (int a = 0; a < graph.n; ++a)
      for (int b = 0; b < a; ++b)
        if (part[a] != part[b]) between += graph.between(a, b);
    least = std::min(least, between / (parts - 1));
  };
  place(0, 0);
  return least;
}

// What is wrong with a packing; empty: nothing.
std::string fault_of(const LinkGraph& graph, Ways ways, int root, const Packing& packing) {
  std::map<std::pair<int, int>, double> load;
  for (const PackedTree& tree : packing.trees) {
    if (static_cast<int>(tree.parent.size()) != graph.n || tree.parent[root] != -1)
      return "no tree from the root";
    for (int v = 0; v < graph.n; ++v) {
      int u = v;
      for (int hops = 0; u != root && hops < graph.n; ++hops) u = tree.parent[u];
      if (u != root) return "a vertex that the root does not reach";
      if (v == root) continue;
      const int above = tree.parent[v];
      load[ways == Ways::one ? std::pair(above, v)
                             : std::pair(std::min(above, v), std::max(above, v))] += tree.rate;
    }
  }
  for (const auto& [link, sum] : load)
    if (sum > graph.between(link.first, link.second) * (1 + 1e-9)) return "a link with too much";
  return "";
}

std::vector<std::vector<int>> subsets(int gpus) {
  std::vector<std::vector<int>> out;
  for (unsigned bits = 1; bits < 1U << gpus; ++bits) {
    std::vector<int> some;
    for (int g = 0; g < gpus; ++g)
      if (bits >> g & 1) some.push_back(g);
    if (some.size() > 1) out.push_back(std::move(some));
  }
  return out;
}

class EveryNode : public ::testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(Named, EveryNode, ::testing::ValuesIn(named_node_links()),
                         [](const auto& node) {
                           std::string name(node.param);
                           std::erase(name, '-');
                           return name;
                         });

void expect_packed(const LinkGraph& graph, Ways ways, int root, double most) {
  const auto packing = pack_trees(graph, ways, root);
  EXPECT_EQ(fault_of(graph, ways, root, *packing), "");
  EXPECT_GE(packing->fractional, (1 - kGap) * most);
  EXPECT_LE(packing->fractional, most * (1 + 1e-9));
  EXPECT_GE(packing->bound, most * (1 - 1e-9));
  EXPECT_GE(packing->rate(), kFewTreesCarry * most * (1 - 1e-9));
  EXPECT_LE(packing->rate(), most * (1 + 1e-9));
  EXPECT_LE(packing->trees.size(), std::size_t{kMostFewTrees});
}

TEST_P(EveryNode, IsPackedToItsLeastCutFromEveryRootWhicheverGpusAreLeft) {
  const NodeLinks links = node_links(GetParam());
  int connected = 0;
  for (const std::vector<int>& gpus : subsets(links.gpus)) {
    const LinkGraph graph = graph_of(links_among(links, gpus));
    if (!is_connected(graph)) continue;
    ++connected;
    SCOPED_TRACE(::testing::PrintToString(gpus));
    for (int root = 0; root < graph.n; ++root)
      expect_packed(graph, Ways::one, root, least_cut(graph, root));
    expect_packed(graph, Ways::both, 0, least_partition(graph));
    if (HasFailure()) return;
  }
  EXPECT_EQ(connected, 197);
}

TEST(Packing, ReachesTheLeastCutOfRandomGraphs) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    NodeLinks links = unlinked("random", 2 + static_cast<int>(random() % 6));
    for (int a = 0; a < links.gpus; ++a)
      for (int b = 0; b < a; ++b)
        if (random() % 3 > 0) links.connect(a, b, 1e9 * (1 + static_cast<double>(random() % 50)));
    const LinkGraph graph = graph_of(links);
    if (!is_connected(graph)) continue;
    SCOPED_TRACE(i);
    for (const Ways ways : {Ways::one, Ways::both}) {
      const double most = ways == Ways::one ? least_cut(graph, 0) : least_partition(graph);
      const auto packing = pack_trees(graph, ways, 0);
      EXPECT_EQ(fault_of(graph, ways, 0, *packing), "");
      EXPECT_GE(packing->fractional, (1 - kGap) * most);
      EXPECT_GE(packing->rate(), kFewTreesCarry * most * (1 - 1e-9));
      EXPECT_LE(packing->rate(), most * (1 + 1e-9));
    }
  }
}

// A quad with all lanes, one with a doubled lane, a broken ring; all eight GPUs of a DGX-1V.
TEST(Packing, TakesAsFewTreesAsItCan) {
  NodeLinks quad = unlinked("quad", 4);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b) quad.connect(a, b, 100);
  NodeLinks chain = unlinked("chain", 4);
  for (int a = 0; a < 3; ++a) chain.connect(a, a + 1, 100);
  const auto of = [](const NodeLinks& links, Ways ways) {
    return *pack_trees(graph_of(links), ways, 0);
  };
  EXPECT_EQ(of(quad, Ways::one).trees.size(), 3u);
  EXPECT_DOUBLE_EQ(of(quad, Ways::one).rate(), 300);
  EXPECT_EQ(of(quad, Ways::both).trees.size(), 2u);
  EXPECT_DOUBLE_EQ(of(quad, Ways::both).rate(), 200);
  EXPECT_EQ(of(chain, Ways::one).trees.size(), 1u);
  EXPECT_DOUBLE_EQ(of(chain, Ways::both).rate(), 100);
  const Packing whole = of(node_links("dgx-1v"), Ways::one);
  EXPECT_EQ(whole.trees.size(), 6u);
  EXPECT_DOUBLE_EQ(whole.rate(), 6 * 200e9);
}

Communicator on(const NodeLinks& links) {
  Communicator comm;
  comm.node_of.assign(links.gpus, 0);
  comm.links = std::make_shared<const NodeLinks>(links);
  return comm;
}

std::map<std::pair<int, int>, double> bytes_by_link(const Schedule& schedule) {
  std::map<std::pair<int, int>, double> bytes;
  const Collective& c = schedule.collective();
  for (GroupRank r = 0; r < c.size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a)
      for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
        const Step step = schedule.step(r, a, k);
        for (const GroupRank to : step.send_to)
          bytes[{r, to}] += static_cast<double>(step.send.count) * c.element_bytes;
      }
  return bytes;
}

const Algorithm& blink(Func func) { return *find_algorithm(kSchemes, func, "blink"); }

constexpr Func kFuncsOfBlink[]{Func::all_reduce, Func::broadcast, Func::reduce};

TEST_P(EveryNode, SendsOverNoLinkMoreThanItCarriesInTheTimeOfThePacking) {
  const NodeLinks all = node_links(GetParam());
  for (const std::vector<int>& gpus : subsets(all.gpus)) {
    const NodeLinks links = links_among(all, gpus);
    const LinkGraph graph = graph_of(links);
    if (!is_connected(graph)) continue;
    SCOPED_TRACE(::testing::PrintToString(gpus));
    for (const Func func : kFuncsOfBlink) {
      const GroupRank root = func == Func::all_reduce ? 0 : links.gpus / 2;
      const auto packing =
          pack_trees(graph, func == Func::all_reduce ? Ways::both : Ways::one, root);
      const auto schedule = blink(func).make(call(func, links.gpus, 1'000'000, root), on(links));
      double sum = 0;
      for (const auto& [link, bytes] : bytes_by_link(*schedule)) {
        const double seconds = 4e6 * 8 / packing->rate();
        const double rate = links.between(link.first, link.second);
        EXPECT_LE(bytes * 8, rate * seconds + 8 * 64) << link.first << " " << link.second;
        sum += bytes;
      }
      EXPECT_EQ(sum, (func == Func::all_reduce ? 2 : 1) * (links.gpus - 1) * 4e6);
    }
    if (HasFailure()) return;
  }
}

TEST_P(EveryNode, IsProvedWhicheverGpusAreLeft) {
  const NodeLinks all = node_links(GetParam());
  std::mt19937 random(1);
  for (const std::vector<int>& gpus : subsets(all.gpus)) {
    const NodeLinks links = links_among(all, gpus);
    for (const Func func : kFuncsOfBlink) {
      Communicator comm = on(links);
      comm.slice_bytes = random() % 2 == 0 ? 0 : 20;
      comm.flow_control.credits = static_cast<std::uint32_t>(random() % 3);
      const GroupRank root =
          func == Func::all_reduce ? 0 : static_cast<GroupRank>(random() % gpus.size());
      const std::uint64_t count = random() % 200;
      const CheckReport report =
          check(*blink(func).make(call(func, links.gpus, count, root), comm));
      EXPECT_TRUE(report.ok) << report.error << " " << ::testing::PrintToString(gpus) << " "
                             << count;
      if (HasFailure()) return;
    }
  }
}

// Groups over several nodes, with other GPUs on each, whose links connect them or not.
TEST(Blink, IsProvedOnNodesOfDifferentGpus) {
  std::mt19937 random(1);
  for (int i = 0; i < 150; ++i) {
    NodeLinks links = unlinked("random", 6);
    for (int a = 0; a < links.gpus; ++a)
      for (int b = 0; b < a; ++b)
        if (random() % 3 == 0) links.connect(a, b, 1e9 * (1 + static_cast<double>(random() % 3)));
    Communicator comm;
    comm.links = std::make_shared<const NodeLinks>(links);
    const int nodes = 1 + static_cast<int>(random() % 4);
    std::vector<std::pair<int, int>> places;
    for (int node = 0; node < nodes; ++node)
      for (int gpu = 0; gpu < links.gpus; ++gpu)
        if (random() % 2 == 0) places.emplace_back(node, gpu);
    if (places.empty()) continue;
    if (random() % 2 == 0) std::shuffle(places.begin(), places.end(), random);
    for (const auto& [node, gpu] : places) {
      comm.node_of.push_back(node);
      comm.gpu_of.push_back(gpu);
    }
    comm.slice_bytes = random() % 2 == 0 ? 0 : 12;
    comm.flow_control.credits = static_cast<std::uint32_t>(random() % 3);
    for (const Func func : kFuncsOfBlink) {
      const Collective c = call(func, static_cast<int>(places.size()), random() % 500,
                                static_cast<GroupRank>(random() % places.size()));
      const CheckReport report = check(*blink(func).make(c, comm));
      EXPECT_TRUE(report.ok) << i << ": " << report.error;
      EXPECT_EQ(report.bytes, (func == Func::all_reduce ? 2u : 1u) * (places.size() - 1) * c.count *
                                  c.element_bytes);
    }
    if (HasFailure()) return;
  }
}

// One hop between nodes: of n nodes each sends and takes 2 (n-1)/n of the data.
TEST(Blink, LoadsTheNicsOfAllNodesAlike) {
  Communicator comm;
  comm.node_of = testing::nodes_of(12, 3);
  const auto schedule = blink(Func::all_reduce).make(call(Func::all_reduce, 12, 120'000), comm);
  std::map<int, double> out;
  for (const auto& [link, bytes] : bytes_by_link(*schedule))
    if (link.first / 3 != link.second / 3) out[link.first] += bytes;
  ASSERT_EQ(out.size(), 12u);  // every GPU's own
  for (const auto& [rank, bytes] : out) EXPECT_EQ(bytes, 480'000 * 1.5 / 3) << rank;
}

TEST(Blink, RefusesGpusThatTheNodeDoesNotHave) {
  Communicator comm = on(node_links("dgx-1v"));
  comm.gpu_of = {0, 1, 8};
  comm.node_of = {0, 0, 0};
  EXPECT_THROW(blink(Func::all_reduce).make(call(Func::all_reduce, 3, 10), comm),
               std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
