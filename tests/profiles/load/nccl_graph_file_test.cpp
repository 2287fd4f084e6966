// NCCL's graph dumps: the graphs read from them, and the errors for wrong ones. The dumps here are
// written by hand in the documented form.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "profiles/error.h"
#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/load.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::replaced;

// Four GPUs and two NICs: rings that cross NICs, a balanced tree.
const std::string kFour = R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="2" nchannels="2" speedintra="20" speedinter="20"
         latencyinter="0" typeintra="NVL" typeinter="PXB" samechannels="0">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="3"/><gpu dev="2"/><gpu dev="1"/><net dev="1"/></channel>
    <channel><net dev="1"/><gpu dev="1"/><gpu dev="2"/><gpu dev="3"/><gpu dev="0"/><net dev="0"/></channel>
  </graph>
  <graph id="1" pattern="1" crossnic="0" nchannels="2" speedintra="20" speedinter="20"
         latencyinter="0" typeintra="NVL" typeinter="PXB" samechannels="1">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><gpu dev="3"/><net dev="0"/></channel>
    <channel><net dev="1"/><gpu dev="2"/><gpu dev="3"/><gpu dev="0"/><gpu dev="1"/><net dev="1"/></channel>
  </graph>
</graphs>
)";

Communicator on_dump(const std::string& text, int ranks, int per_node) {
  Communicator comm;
  comm.channels = 0;
  comm.graphs = parse_nccl_graphs(text, "graph.xml");
  for (int r = 0; r < ranks; ++r) comm.node_of.push_back(r / per_node);
  return comm;
}

std::string graph_error(const std::string& text) {
  try {
    parse_nccl_graphs(text, "graph.xml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NcclGraphFile, GivesTheRingThatTheDumpedNodesFormTogether) {
  const Communicator comm = on_dump(kFour, 8, 4);
  const NcclNodes nodes(8, comm.node_of);
  const auto ring = [&](int channel) {
    const NcclRing order(nodes, comm.graphs->node, channel);
    std::vector<GroupRank> ranks;
    for (int i = 0; i < 8; ++i) ranks.push_back(order.rank_at(i));
    return ranks;
  };
  // The second node uses the other channel's list, so that channels keep their rails.
  EXPECT_EQ(ring(0), (std::vector<GroupRank>{0, 3, 2, 1, 5, 6, 7, 4}));
  EXPECT_EQ(ring(1), (std::vector<GroupRank>{1, 2, 3, 0, 4, 7, 6, 5}));
  EXPECT_EQ(ring(2), ring(0));
  EXPECT_EQ(comm.graphs->node.channels(2), 4);
}

TEST(NcclGraphFile, GivesTheNicOfEveryEdgeBetweenNodes) {
  const Communicator comm = on_dump(kFour, 8, 4);
  const Collective c{Func::all_reduce, 8, 1 << 20, 4, 0};
  const auto ring = find_algorithm("nccl-2.30", c.func, "ring")->make(c, comm);
  EXPECT_EQ(ring->nics(), 2);
  // Channel 0: from GPU 1 by NIC 1 to GPU 1 of the next node, and back by NIC 0.
  EXPECT_EQ(ring->nic(1, 5, 0, Way::send), 1);
  EXPECT_EQ(ring->nic(1, 5, 0, Way::recv), 1);
  EXPECT_EQ(ring->nic(4, 0, 0, Way::send), 0);
  EXPECT_EQ(ring->nic(4, 0, 0, Way::recv), 0);
  const auto tree = find_algorithm("nccl-2.30", c.func, "tree")->make(c, comm);
  EXPECT_EQ(tree->nic(2, 6, 1, Way::send), 1);
}

TEST(NcclGraphFile, GivesATreeWithItsPattern) {
  const auto up_of_second_node = [](const std::string& text) {
    const Communicator comm = on_dump(text, 8, 4);
    const NcclNodes nodes(8, comm.node_of);
    // In the first tree node 1 is the second child of node 0; in the second tree it is the root.
    return std::pair{nccl_tree_links(nodes, comm.graphs->node, 0, 4).up,
                     nccl_tree_links(nodes, comm.graphs->node, 2, 0).up};
  };
  EXPECT_EQ(up_of_second_node(kFour), (std::pair<GroupRank, GroupRank>{0, 4}));  // balanced
  EXPECT_EQ(up_of_second_node(replaced(kFour, "pattern=\"1\"", "pattern=\"2\"")),
            (std::pair<GroupRank, GroupRank>{1, 5}));  // split
}

TEST(NcclGraphFile, GivesSchedulesThatAreRight) {
  for (const char* name : {"ring", "tree", "tuned"})
    for (const int pattern : {1, 2, 3})
      for (const int nodes : {1, 2, 3, 5}) {
        const Communicator comm =
            on_dump(replaced(kFour, "pattern=\"1\"", "pattern=\"" + std::to_string(pattern) + "\""),
                    4 * nodes, 4);
        const Collective c{Func::all_reduce, 4 * nodes, 5000, 4, 0};
        const CheckReport report = check(*find_algorithm("nccl-2.28", c.func, name)->make(c, comm));
        EXPECT_TRUE(report.ok) << name << ", " << nodes << " nodes: " << report.error;
      }
}

TEST(NcclGraphFile, TellsGpusApartByTheirRanks) {
  std::string text = kFour;
  for (int gpu = 0; gpu < 4; ++gpu) {  // devices in another order than the ranks
    const std::string from = "<gpu dev=\"" + std::to_string(gpu) + "\"/>";
    const std::string to = "<gpu dev=\"0x" + std::to_string(16 - gpu) + "\" rank=\"" +
                           std::to_string(8 + gpu) + "\"/>";
    while (text.find(from) != std::string::npos) text = replaced(text, from, to);
  }
  const auto graphs = parse_nccl_graphs(text, "graph.xml");
  EXPECT_EQ(graphs->ring.channels[0].order, (std::vector<int>{0, 3, 2, 1}));
}

TEST(NcclGraphFile, OfANodeWithoutNicsIsForOneNodeOnly) {
  std::string text = kFour;
  for (const char* nic : {"<net dev=\"0\"/>", "<net dev=\"1\"/>"})
    while (text.find(nic) != std::string::npos) text = replaced(text, nic, "");
  const Collective alone{Func::all_reduce, 4, 100, 4, 0}, several{Func::all_reduce, 8, 100, 4, 0};
  const Algorithm* ring = find_algorithm("nccl-2.30", Func::all_reduce, "ring");
  EXPECT_NO_THROW(ring->make(alone, on_dump(text, 4, 4)));
  EXPECT_THROW(ring->make(several, on_dump(text, 8, 4)), std::invalid_argument);
}

TEST(NcclGraphFile, RefusesWhatIsWrongWithItsLine) {
  const std::string remedy =
      "; give the file that NCCL_GRAPH_DUMP_FILE or NCCL_TOPO_DUMP_FILE wrote";
  EXPECT_EQ(graph_error(replaced(kFour, "dev=\"3\"", "dev=\"2\"")),
            "graph.xml:4: a channel must name every GPU of the node once" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, "nchannels=\"2\"", "nchannels=\"3\"")),
            "graph.xml:2: nchannels is 3, but there are 2" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, "typeintra=\"NVL\"", "typeintra=\"NVX\"")),
            "graph.xml:2: typeintra is 'NVX', which is no type of path" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, " samechannels=\"0\"", "")),
            "graph.xml:2: <graph> has no attribute samechannels" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, "id=\"1\"", "id=\"0\"")),
            "graph.xml:7: there are two graphs with id 0" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, "id=\"1\"", "id=\"2\"")),
            "graph.xml:1: there is no graph of the tree (id 1)" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, "<net dev=\"1\"/></channel>", "</channel>")),
            "graph.xml:4: a channel has two NICs or none" + remedy);
  EXPECT_EQ(graph_error(replaced(kFour, "speedintra=\"20\"", "speedintra=\"nan\"")),
            "graph.xml:2: speedintra is 'nan', not a number from 0 to 1e6" + remedy);
  for (const char* text : {"<graphs version=\"1\"><graph", "schema: ghostrank/job/1"})
    EXPECT_NE(graph_error(text).find("this is not XML"), std::string::npos) << text;
  EXPECT_EQ(
      graph_error(replaced(kFour, "</graphs>", std::string(kMaxGraphBytes, ' ') + "</graphs>")),
      "graph.xml:1: the file is larger than 1 MiB" + remedy);
}

const std::string kTwoNodes =
    "schema: ghostrank/job/1\nmodel: resnet50\ndevice: h100-sxm\n"
    "cluster: {nodes: 2, gpus_per_node: 4, nics_per_node: 2}\n";

TEST(NcclGraphFile, IsFoundNextToTheJobAndKeptInItsConfiguration) {
  const test::Folder folder;
  folder.write("graph.xml", kFour);
  const std::string job = folder.write(
      "job.yaml", kTwoNodes + "collectives: {library: nccl-2.28, node_template: graph.xml}\n");
  const LoadedJob loaded = load_job(job, {});
  ASSERT_NE(loaded.spec.collectives.graphs, nullptr);
  EXPECT_EQ(loaded.spec.collectives.graphs->node.gpus, 4);
  const test::Folder elsewhere;  // a folder without the dump
  const LoadedJob again = load_job(elsewhere.write("again.json", loaded.config_json), {});
  ASSERT_NE(again.spec.collectives.graphs, nullptr);
  EXPECT_EQ(again.config_json, loaded.config_json);
}

TEST(NcclGraphFile, MustFitTheCluster) {
  const test::Folder folder;
  folder.write("graph.xml", kFour);
  const auto error = [&](const std::string& cluster, const std::string& file) {
    const std::string text =
        "schema: ghostrank/job/1\nmodel: resnet50\ndevice: h100-sxm\ncluster: " + cluster +
        "\ncollectives: {library: nccl-2.28, node_template: " + file + "}\n";
    try {
      load_job(folder.write("job.yaml", text), {});
    } catch (const Error& thrown) {
      return std::string(thrown.what());
    }
    return std::string();
  };
  EXPECT_NE(error("{nodes: 2, gpus_per_node: 8}", "graph.xml").find("a node with 4 GPUs"),
            std::string::npos);
  EXPECT_NE(error("{nodes: 2, gpus_per_node: 4, nics_per_node: 4}", "graph.xml")
                .find("a node with 2 NICs"),
            std::string::npos);
  EXPECT_NE(error("{nodes: 2, gpus_per_node: 4}", "missing.xml").find("there is no graph dump"),
            std::string::npos);
}

TEST(NcclGraphFile, ReadsDumpsOfRealRuns) {
  const std::string data = test::data_folder();
  if (!std::filesystem::is_directory(data)) GTEST_SKIP() << "there is no " << data;
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::string path = entry.path().string();
    if (!is_nccl_graph_file(path)) continue;
    const std::string text = read_nccl_graph_file(path, "");
    if (text.find("<graphs") == std::string::npos) continue;
    EXPECT_NO_THROW(parse_nccl_graphs(text, path));
    ++read;
  }
  if (read == 0) GTEST_SKIP() << "no graph dump in " << data;
}

}  // namespace
}  // namespace ghostrank
