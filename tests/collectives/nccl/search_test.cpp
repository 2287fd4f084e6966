// NCCL's search: results on known nodes, worked out without this code (some also occur in public
// logs of real clusters), and the rules that it keeps on any node.
#include "collectives/nccl/machine/search.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/found.h"
#include "collectives/nccl/machine/templates.h"

namespace ghostrank {
namespace {

using Graphs = std::shared_ptr<const NcclGraphs>;

Graphs found(const std::string& name, std::vector<int> gpus, bool between = true) {
  NcclSearchOptions options;
  options.between = between;
  return nccl_search(nccl_template(name), gpus, options);
}

std::string text(double value) {
  const std::string digits = std::to_string(value);
  return digits.substr(0, digits.find('.'));
}

// "[first NIC,last NIC] GPUs" of a channel.
std::string text(const NcclGraphChannel& c) {
  std::string line = '[' + std::to_string(c.first_nic) + ',' + std::to_string(c.last_nic) + ']';
  for (const int gpu : c.order) line += ' ' + std::to_string(gpu);
  return line;
}

// "channels x inside/between", the rates in GB/s, rounded down.
std::string speed(const NcclLinks& links) {
  return std::to_string(links.channels) + " x " + text(links.inside_GBps) + '/' +
         text(links.between_GBps);
}

struct Expected {
  std::string node;
  std::vector<int> gpus;
  bool between;
  std::string ring, tree, nvls;
  NcclNode::Tree pattern;
  bool cross_nic, same_channels;
  int channels;
};

constexpr auto kPlain = NcclNode::Tree::plain, kBalanced = NcclNode::Tree::balanced;
const std::vector<int> kAll{0, 1, 2, 3, 4, 5, 6, 7}, kFour{0, 1, 2, 3}, kTwo{0, 1}, kOne{0};

const std::vector<Expected> kExpected{
    // clang-format off
    {"hgx-h100-400g", kAll,  true,  "8 x 48/48",  "8 x 48/48",  "8 x 40/48", kPlain,    true,  false, 16},
    {"hgx-h100-400g", kFour, true,  "8 x 24/24",  "8 x 48/24",  "4 x 48/48", kPlain,    false, false, 16},
    {"hgx-h100-400g", kTwo,  true,  "4 x 24/24",  "4 x 48/24",  "2 x 48/48", kPlain,    false, false, 8},
    {"hgx-h100-400g", kOne,  true,  "2 x 24/24",  "2 x 48/24",  "0 x 0/0",   kPlain,    false, true,  4},
    {"hgx-h100-200g", kAll,  true,  "8 x 24/24",  "8 x 48/24",  "8 x 24/24", kPlain,    false, false, 16},
    {"hgx-h100-200g", kFour, true,  "4 x 24/24",  "4 x 48/24",  "4 x 24/24", kPlain,    false, false, 8},
    {"hgx-h100-200g", kTwo,  true,  "2 x 24/24",  "2 x 48/24",  "2 x 24/24", kPlain,    false, false, 4},
    {"hgx-h100-200g", kOne,  true,  "1 x 24/24",  "1 x 48/24",  "0 x 0/0",   kPlain,    false, true,  2},
    {"hgx-h100-4nic", kAll,  true,  "8 x 24/24",  "8 x 48/24",  "4 x 48/48", kBalanced, false, false, 16},
    {"hgx-h100-1nic", kAll,  true,  "2 x 24/24",  "2 x 48/24",  "1 x 48/48", kPlain,    false, true,  4},
    {"hgx-h100-400g", kAll,  false, "12 x 30/30", "12 x 30/30", "8 x 40/60", kBalanced, false, true,  24},
    {"hgx-h100-400g", kFour, false, "12 x 30/30", "12 x 30/30", "4 x 60/60", kBalanced, false, true,  24},
    {"hgx-h100-400g", kTwo,  false, "12 x 30/30", "12 x 60/60", "2 x 60/60", kBalanced, false, true,  24},
    {"dgx-a100",      kAll,  true,  "8 x 24/24",  "8 x 30/24",  "0 x 0/0",   kBalanced, false, false, 16},
    {"dgx-a100",      kFour, true,  "4 x 24/24",  "4 x 48/24",  "0 x 0/0",   kBalanced, false, false, 8},
    {"dgx-a100",      kTwo,  true,  "2 x 24/24",  "2 x 48/24",  "0 x 0/0",   kBalanced, false, false, 4},
    {"dgx-a100",      kOne,  true,  "1 x 24/24",  "1 x 48/24",  "0 x 0/0",   kPlain,    false, true,  2},
    {"one-gpu",       kOne,  true,  "1 x 24/24",  "1 x 48/24",  "0 x 0/0",   kPlain,    false, true,  2},
    {"one-gpu-400g",  kOne,  true,  "2 x 24/24",  "2 x 48/24",  "0 x 0/0",   kPlain,    false, true,  4},
    // clang-format on
};

TEST(NcclSearch, FindsChannelsAndSpeedsOfKnownNodes) {
  for (const Expected& e : kExpected) {
    SCOPED_TRACE(e.node + ", " + std::to_string(e.gpus.size()) + " GPUs");
    const Graphs graphs = found(e.node, e.gpus, e.between);
    EXPECT_EQ(speed(graphs->ring.links), e.ring);
    EXPECT_EQ(speed(graphs->tree.links), e.tree);
    EXPECT_EQ(speed(graphs->nvls), e.nvls);
    EXPECT_EQ(graphs->node.tree, e.pattern);
    EXPECT_EQ(graphs->node.swap_odd_nodes, e.cross_nic);
    EXPECT_EQ(graphs->ring.links.same_channels, e.same_channels);
    EXPECT_EQ(graphs->node.channels(e.between ? 4 : 1), e.channels);
  }
}

struct ExpectedOrder {
  std::string node;
  std::vector<int> gpus;
  std::vector<std::string> ring, tree;  // the first channels
};
const std::vector<ExpectedOrder> kOrders{
    {"hgx-h100-400g",
     kAll,
     {"[0,1] 0 7 6 5 4 3 2 1", "[1,0] 1 2 3 4 5 6 7 0", "[2,3] 2 1 0 7 6 5 4 3",
      "[3,2] 3 4 5 6 7 0 1 2", "[4,5] 4 3 2 1 0 7 6 5", "[5,4] 5 6 7 0 1 2 3 4",
      "[6,7] 6 5 4 3 2 1 0 7", "[7,6] 7 0 1 2 3 4 5 6"},
     {"[0,0] 0 1 2 3 4 5 6 7", "[1,1] 1 2 3 4 5 6 7 0"}},
    {"hgx-h100-400g",
     kFour,
     {"[0,0] 0 3 2 1", "[1,1] 1 0 3 2", "[2,2] 2 1 0 3", "[3,3] 3 2 1 0", "[0,0] 0 3 2 1"},
     {"[0,0] 0 1 2 3", "[1,1] 1 2 3 0"}},
    {"hgx-h100-400g", kTwo, {"[0,0] 0 1", "[1,1] 1 0", "[0,0] 0 1", "[1,1] 1 0"}, {"[0,0] 0 1"}},
    {"hgx-h100-400g", {4, 5}, {"[4,4] 0 1", "[5,5] 1 0"}, {"[4,4] 0 1"}},
    {"hgx-h100-400g", kOne, {"[0,0] 0", "[0,0] 0"}, {"[0,0] 0", "[0,0] 0"}},
    {"hgx-h100-400g", {3}, {"[3,3] 0", "[3,3] 0"}, {"[3,3] 0", "[3,3] 0"}},
    {"hgx-h100-200g",
     kAll,
     {"[0,0] 0 7 6 5 4 3 2 1", "[1,1] 1 0 7 6 5 4 3 2", "[2,2] 2 1 0 7 6 5 4 3"},
     {"[0,0] 0 1 2 3 4 5 6 7", "[1,1] 1 2 3 4 5 6 7 0"}},
    {"hgx-h100-4nic",
     kAll,
     {"[0,0] 0 7 6 5 4 3 2 1", "[1,1] 2 1 0 7 6 5 4 3", "[2,2] 4 3 2 1 0 7 6 5",
      "[3,3] 6 5 4 3 2 1 0 7", "[0,0] 0 7 6 5 4 3 2 1"},
     {"[0,0] 0 1 2 3 4 5 6 7"}},
    {"hgx-h100-1nic",
     kAll,
     {"[0,0] 0 7 6 5 4 3 2 1", "[0,0] 0 7 6 5 4 3 2 1"},
     {"[0,0] 0 1 2 3 4 5 6 7"}},
    {"dgx-a100",
     kAll,
     {"[0,0] 0 7 6 5 4 3 2 1", "[1,1] 1 2 3 4 5 6 7 0", "[2,2] 2 1 0 7 6 5 4 3",
      "[3,3] 3 4 5 6 7 0 1 2"},
     {"[0,0] 0 1 2 3 4 5 6 7", "[1,1] 1 0 7 6 5 4 3 2"}},
    {"dgx-a100", kFour, {"[0,0] 0 3 2 1", "[1,1] 1 2 3 0"}, {"[0,0] 0 1 2 3", "[1,1] 1 0 3 2"}},
};

TEST(NcclSearch, FindsOrdersAndNicsOfKnownNodes) {
  for (const ExpectedOrder& e : kOrders) {
    SCOPED_TRACE(e.node + ", " + std::to_string(e.gpus.size()) + " GPUs");
    const Graphs graphs = found(e.node, e.gpus);
    const auto compare = [](const NcclGraph& graph, const std::vector<std::string>& lines) {
      ASSERT_GE(graph.channels.size(), lines.size());
      for (std::size_t c = 0; c < lines.size(); ++c) EXPECT_EQ(text(graph.channels[c]), lines[c]);
    };
    compare(graphs->ring, e.ring);
    compare(graphs->tree, e.tree);
  }
}

TEST(NcclSearch, GivesEveryHeadOfNvlsANicOfItsOwn) {
  const auto heads = [](const std::string& node) { return found(node, kAll)->heads; };
  EXPECT_EQ(heads("hgx-h100-4nic"), (std::vector<NcclHead>{{0, 0}, {2, 1}, {4, 2}, {6, 3}}));
  EXPECT_EQ(heads("hgx-h100-400g").size(), 8U);
  EXPECT_TRUE(heads("dgx-a100").empty());
}

// On any node every channel visits every GPU once and uses NICs that exist, and the channels that
// enter by one NIC take at most its rate plus 1 GB/s.
TEST(NcclSearch, KeepsToItsRulesOnAnyNode) {
  for (const int compute_capability : {80, 90})
    for (const int gpus : {1, 2, 3, 5, 8, 12})
      for (const int nics : {1, 3, 8})
        for (const double GBps : {3.125, 25.0}) {
          const NcclMachine machine = nccl_machine({gpus, nics, GBps, compute_capability});
          std::vector<int> all(static_cast<std::size_t>(gpus));
          for (int g = 0; g < gpus; ++g) all[static_cast<std::size_t>(g)] = g;
          const Graphs graphs = nccl_search(machine, all, {});
          SCOPED_TRACE(machine.name + ", " + std::to_string(GBps) + " GB/s, sm " +
                       std::to_string(compute_capability));
          for (const NcclGraph* graph : {&graphs->ring, &graphs->tree}) {
            ASSERT_GT(graph->channels.size(), 0U);
            EXPECT_GT(graph->links.between_GBps, 0);
            std::vector<double> load(static_cast<std::size_t>(nics));
            for (const NcclGraphChannel& c : graph->channels) {
              std::vector<int> order = c.order;
              std::sort(order.begin(), order.end());
              EXPECT_EQ(order, all);
              for (std::size_t i = 0; i < c.order.size(); ++i)
                EXPECT_EQ(c.position[static_cast<std::size_t>(c.order[i])], static_cast<int>(i));
              ASSERT_TRUE(c.first_nic >= 0 && c.first_nic < nics);
              ASSERT_TRUE(c.last_nic >= 0 && c.last_nic < nics);
              load[static_cast<std::size_t>(c.first_nic)] += graph->links.between_GBps;
            }
            for (const double GBps_in : load) EXPECT_LE(GBps_in, GBps + 1);
          }
        }
}

TEST(NcclSearch, FollowsTheEnvironment) {
  NcclSearchOptions straight;
  straight.cross_nic = 0;
  const Graphs graphs = nccl_search(nccl_template("hgx-h100-400g"), kAll, straight);
  EXPECT_FALSE(graphs->node.swap_odd_nodes);
  for (const NcclGraphChannel& c : graphs->ring.channels) EXPECT_EQ(c.first_nic, c.last_nic);
  // Without PXN, the way back to the first GPU's NIC crosses a CPU, too far for LL128.
  NcclSearchOptions no_relay;
  no_relay.pxn = false;
  const Graphs direct = nccl_search(nccl_template("hgx-h100-200g"), kAll, no_relay);
  EXPECT_FALSE(direct->ring.links.ll128);
  EXPECT_TRUE(found("hgx-h100-200g", kAll)->ring.links.ll128);
}

TEST(NcclSearch, RefusesWhatItDoesNotModel) {
  NcclMachine machine = nccl_template("hgx-h100-400g");
  const std::vector<int> ninth{8};
  EXPECT_THROW(nccl_search(machine, ninth, {}), std::invalid_argument);
  EXPECT_THROW(nccl_search(machine, {}, {}), std::invalid_argument);
  machine.compute_capability = 70;
  EXPECT_THROW(nccl_search(machine, kAll, {}), std::invalid_argument);
  machine.compute_capability = 100;
  EXPECT_THROW(nccl_search(machine, kAll, {}), std::invalid_argument);
  machine = nccl_template("hgx-h100-400g");
  machine.nics.clear();
  EXPECT_THROW(nccl_search(machine, kAll, {}), std::invalid_argument);
  EXPECT_THROW(nccl_template("no-such-node"), std::invalid_argument);
  std::vector<int> many(73);
  for (int g = 0; g < 73; ++g) many[static_cast<std::size_t>(g)] = g;
  EXPECT_THROW(nccl_search(nccl_machine({73, 8}), many, {}), std::invalid_argument);
  many.pop_back();
  EXPECT_NO_THROW(nccl_search(nccl_machine({73, 8}), many, {}));
}

Communicator on(const std::string& node, std::vector<std::int32_t> node_of,
                std::vector<std::int32_t> gpu_of = {}) {
  Communicator comm;
  comm.node = node;
  comm.node_of = std::move(node_of);
  comm.gpu_of = std::move(gpu_of);
  return comm;
}

Graphs of(const Communicator& comm) {
  const NcclNodes nodes(static_cast<int>(comm.node_of.size()), comm.node_of);
  NcclSearchOptions options;
  options.between = nodes.nodes() > 1;
  return nccl_graphs_of(comm, nodes, options);
}

TEST(NcclGraphsOf, NamesANicByTheGpuBesideItIfTheCommunicatorHasFewerGpusThanTheNode) {
  const Graphs first = of(on("hgx-h100-400g", {0, 0, 1, 1}));
  const Graphs later = of(on("hgx-h100-400g", {0, 0, 1, 1}, {4, 5, 4, 5}));
  EXPECT_EQ(first->ring, later->ring);
  EXPECT_EQ(text(first->ring.channels[1]), '[' + std::to_string(nccl_nic_beside(1)) + ',' +
                                               std::to_string(nccl_nic_beside(1)) + "] 1 0");
  // In the other order of ranks, the same GPU is another local rank.
  const Graphs swapped = of(on("hgx-h100-400g", {0, 0, 1, 1}, {5, 4, 5, 4}));
  EXPECT_EQ(swapped->ring.channels[0].order, (std::vector<int>{1, 0}));
  EXPECT_EQ(swapped->ring.channels[0].first_nic, nccl_nic_beside(1));
  EXPECT_EQ(swapped->ring.channels[0].position, (std::vector<int>{1, 0}));
}

TEST(NcclGraphsOf, KnowsWhichGpusAreAlike) {
  const auto alike = [](const std::string& node, std::vector<int> gpus) {
    return nccl_like_first_gpus(nccl_template(node), gpus, {});
  };
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_TRUE(alike("hgx-h100-400g", {gpu})) << gpu;
  EXPECT_TRUE(alike("hgx-h100-400g", {6, 7}));
  EXPECT_TRUE(alike("dgx-a100", {2, 3}));
  EXPECT_FALSE(alike("dgx-a100", {1, 2}));  // on two PCIe switches
}

TEST(NcclGraphsOf, TakesTheLeastOfNodesWithDifferentNumbersOfRanks) {
  const Graphs graphs = of(on("hgx-h100-400g", {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(graphs->node.search_channels, 4);
  EXPECT_EQ(graphs->ring.links.between_GBps, 24);
  ASSERT_TRUE(graphs->smaller.contains(2));
  EXPECT_EQ(nccl_ring_list(graphs->node, 1, 1, 2).local_at(0), 1);
}

TEST(NcclGraphsOf, RefusesMoreRanksThanGpus) {
  EXPECT_THROW(of(on("one-gpu", {0, 0, 1, 1})), std::invalid_argument);
  EXPECT_THROW(of(on("hgx-h100-400g", {0, 0, 1, 1}, {3, 3, 0, 1})), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
