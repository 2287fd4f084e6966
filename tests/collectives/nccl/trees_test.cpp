// NCCL's double binary tree and NVLSTree, proved by the checker and compared with the shape of the
// trees.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/machine/templates.h"
#include "collectives/schedule.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

TEST(NcclTree, IsRightOverNodesOfOneGpu) {
  for (const char* library : kLibraries)
    for (int size = 1; size <= 33; ++size)
      for (const Protocol protocol : kProtocols)
        for (const std::uint64_t count : {0, 1, 1000}) {
          prove(library, "tree", {Func::all_reduce, size, count, 4, 0}, communicator(4, protocol));
          if (HasFailure()) return;
        }
}

TEST(NcclTree, IsRightOnEveryNodeTemplate) {
  for (const std::string_view node : nccl_template_names())
    for (const int per_node : {1, 2, 3, 8})
      for (const int nodes : {1, 2, 3, 4, 7, 8}) {
        const int size = nodes * per_node;
        Communicator comm = communicator(16, Protocol::ll);
        comm.node = per_node <= nccl_template(node).gpu_count() ? node : "auto";
        comm.node_of = nodes_of(size, per_node);
        prove("nccl-2.30", "tree", {Func::all_reduce, size, 8192, 8, 0}, comm);
        if (HasFailure()) return;
      }
}

TEST(NcclTree, IsAsDeepAsItsClosedFormSaysAndHasNoNodeInsideBothTrees) {
  for (int nodes = 2; nodes <= 130; ++nodes) {
    const Collective c{Func::all_reduce, nodes, 1, 4, 0};
    for (int tree = 0; tree < 2; ++tree) {
      int deepest = 0;
      for (int node = 0; node < nodes; ++node) {
        int depth = 0;
        for (int at = node; nccl_double_tree(nodes, at, tree).up >= 0; ++depth)
          at = nccl_double_tree(nodes, at, tree).up;
        deepest = std::max(deepest, depth);
      }
      EXPECT_EQ(2 * deepest, find_algorithm("nccl-2.30", c.func, "tree")->cost(c).steps) << nodes;
    }
    for (int node = 0; node < nodes && nodes % 2 == 0; ++node) {
      const auto inside = [&](int tree) {
        const NcclTreeNode vertex = nccl_double_tree(nodes, node, tree);
        return vertex.child[0] >= 0 || vertex.child[1] >= 0;
      };
      EXPECT_FALSE(inside(0) && inside(1)) << nodes << ", " << node;
    }
  }
}

TEST(NcclTree, IsRightOverManyChunks) {
  for (const Protocol protocol : kProtocols)
    prove("nccl-2.30", "tree", {Func::all_reduce, 5, 3 * nccl_step_bytes(protocol) / 8 + 3, 8, 0},
          communicator(1, protocol));
}

TEST(NcclTree, CrossesNodesOnlyAlongTheDoubleTree) {
  Communicator comm = communicator(16, Protocol::ll);
  comm.node_of = nodes_of(64, 8);
  const std::uint64_t count = 8192, wire_bytes = 16 * count;  // LL doubles the bytes
  const CheckReport report =
      prove("nccl-2.30", "tree", {Func::all_reduce, 64, count, 8, 0}, comm, true);
  std::vector<std::uint64_t> egress(8);
  std::uint64_t total = 0;
  for (const PairBytes& pair : report.pairs) {
    if (pair.source / 8 == pair.destination / 8) continue;
    EXPECT_EQ(pair.source % 8, pair.destination % 8);
    egress[pair.source / 8] += pair.bytes;
    total += pair.bytes;
  }
  EXPECT_EQ(total, 2 * 7 * wire_bytes);
  // Every node is a leaf of at least one tree (1 edge) and has at most 3 edges in the other; each
  // edge carries half the data.
  for (const std::uint64_t bytes : egress) {
    EXPECT_GE(bytes, wire_bytes);
    EXPECT_LE(bytes, 2 * wire_bytes);
  }
}

TEST(NcclNvlsTree, IsRight) {
  for (const char* library : kLibraries)
    for (const int per_node : {2, 4, 5, 8})
      for (const int nodes : {1, 2, 3, 4, 5})
        for (const std::uint64_t count : {0, 1, 100, 9000}) {
          Communicator comm = communicator(2);
          comm.node_of = nodes_of(nodes * per_node, per_node);
          prove(library, nodes == 1 ? "nvls" : "nvlstree",
                {Func::all_reduce, nodes * per_node, count, 8, 0}, comm);
          if (HasFailure()) return;
        }
}

// Four heads: GPUs 0, 2, 4 and 6. The others send nothing to other nodes.
TEST(NcclNvlsTree, IsRightWithFewerHeadsThanGpus) {
  for (const int nodes : {2, 3, 4}) {
    Communicator comm = communicator(2);
    comm.node = "hgx-h100-4nic";
    comm.node_of = nodes_of(nodes * 8, 8);
    const Collective c{Func::all_reduce, nodes * 8, 70'001, 8, 0};
    const CheckReport report = prove("nccl-2.28", "nvlstree", c, comm, true);
    for (const PairBytes& pair : report.pairs)
      if (pair.source / 8 != pair.destination / 8) {
        EXPECT_EQ(pair.source % 8, pair.destination % 8);
        EXPECT_EQ(pair.source % 2, 0);
      }
  }
}

TEST(NcclNvlsTree, IsRefusedWhereNcclRefusesIt) {
  const auto make = [](const char* name, const char* node, int nodes) {
    Communicator comm = communicator(2);
    comm.node = node;
    comm.node_of = nodes_of(8 * nodes, 8);
    return find_algorithm("nccl-2.28", Func::all_reduce, name)
        ->make({Func::all_reduce, 8 * nodes, 1000, 4, 0}, comm);
  };
  EXPECT_NO_THROW(make("nvlstree", "hgx-h100-400g", 2));
  EXPECT_NO_THROW(make("nvls", "hgx-h100-400g", 1));
  EXPECT_THROW(make("nvlstree", "hgx-h100-400g", 1), std::invalid_argument);
  EXPECT_THROW(make("nvls", "hgx-h100-400g", 2), std::invalid_argument);  // needs CollNet
  EXPECT_THROW(make("nvlstree", "dgx-a100", 2), std::invalid_argument);   // its switch cannot
  EXPECT_THROW(make("nvls", "dgx-a100", 1), std::invalid_argument);
  EXPECT_THROW(make("nvlstree", "hgx-h100-1nic", 2), std::invalid_argument);  // one head
}

TEST(NcclNvlsTree, IsRightOverManyLoops) {
  Communicator comm = communicator(1);
  comm.node_of = nodes_of(8, 2);
  prove("nccl-2.30", "nvlstree", {Func::all_reduce, 8, 30'011, 8, 0}, comm);
}

TEST(NcclNvlsTree, SpreadsTheTreeEvenlyOverTheNicsOfANode) {
  Communicator comm = communicator(2);
  comm.node_of = nodes_of(32, 8);
  const std::uint64_t count = 8192;
  const CheckReport report =
      prove("nccl-2.30", "nvlstree", {Func::all_reduce, 32, count, 8, 0}, comm, true);
  std::vector<std::uint64_t> by_rail(8);
  for (const PairBytes& pair : report.pairs)
    if (pair.source / 8 != pair.destination / 8) {
      EXPECT_EQ(pair.source % 8, pair.destination % 8);
      by_rail[pair.source % 8] += pair.bytes;
    }
  for (const std::uint64_t bytes : by_rail) EXPECT_EQ(bytes, 2 * 3 * count * 8 / 8);
}

TEST(NcclNvlsTree, NeedsNodesOfSeveralRanksAndOneSize) {
  const auto make = [](const std::vector<std::int32_t>& node_of) {
    Communicator comm = communicator(2);
    comm.node_of = node_of;
    return find_algorithm("nccl-2.30", Func::all_reduce, "nvlstree")
        ->make({Func::all_reduce, 4, 10, 4, 0}, comm);
  };
  EXPECT_THROW(make({}), std::invalid_argument);
  EXPECT_THROW(make({0, 0, 0, 1}), std::invalid_argument);
  EXPECT_NO_THROW(make({0, 0, 1, 1}));
}

}  // namespace
}  // namespace ghostrank
