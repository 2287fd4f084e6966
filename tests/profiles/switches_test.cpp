// Fabrics as switches and cables: sizes of fat trees, placements, links that fail, files of links.
#include "profiles/job/switches.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/job/leaf_spine.h"
#include "profiles/load/files/places.h"
#include "profiles/load/files/topology.h"
#include "profiles/load/load.h"
#include "tests/profiles/cluster.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::cluster_of;
using test::error_of;
using Kind = TopologySpec::Kind;

// The fabric of Llama 3's report: 2 nodes in a rack, 192 racks in a pod, 8 pods, 1:7 above pods.
ClusterSpec published() {
  ClusterSpec cluster = cluster_of(2048, 8, Kind::fat_tree);
  cluster.topology.places = 3072;
  cluster.topology.pods = 8;
  cluster.topology.leaves = 1536;
  cluster.topology.pod_oversubscription = 7;
  return cluster;
}

TEST(FatTree, HasThePublishedSizes) {
  const FatTree tree = fat_tree_of(published());
  EXPECT_EQ(tree.pods, 8);
  EXPECT_EQ(tree.leaves, 192);
  EXPECT_EQ(tree.ports, 16);
  EXPECT_EQ(tree.spines, 16);
  EXPECT_EQ(tree.leaf_bps, 400e9);
  EXPECT_EQ(tree.cores, 28);
  EXPECT_DOUBLE_EQ(tree.spine_bps * tree.cores * 7, 192 * 400e9);
}

TEST(FatTree, GivesEveryPodAsMuchAboveAsTheOversubscriptionLeaves) {
  const SwitchGraph graph = switches_of(published());
  double below = 0, above = 0;  // bit/s of pod 0
  for (const SwitchGraph::Cable& cable : graph.cables) {
    if (graph.switches[cable.a].pod != 0) continue;
    (cable.a < graph.leaves ? below : above) += cable.bps;
  }
  EXPECT_DOUBLE_EQ(below, 3072 * 400e9);
  EXPECT_NEAR(above * 7, below, 1e-9 * below);
  EXPECT_EQ(graph.leaf_of[Nic(0)], graph.leaf_of[Nic(15)]);
  EXPECT_NE(graph.leaf_of[Nic(15)], graph.leaf_of[Nic(16)]);
  EXPECT_EQ(graph.switches[graph.leaf_of[Nic(3071)]].pod, 0u);  // packed by pod
  EXPECT_EQ(graph.switches[graph.leaf_of[Nic(3072)]].pod, 1u);
}

TEST(Placement, SpreadsNodesOverPodsOrDrawsThem) {
  ClusterSpec cluster = cluster_of(6, 1, Kind::fat_tree);
  cluster.topology.places = 12;
  cluster.topology.pods = 3;
  cluster.topology.leaves = 6;
  const auto pods = [&] {
    const SwitchGraph graph = switches_of(cluster);
    std::vector<std::uint32_t> of;
    for (const Nic nic : graph.leaf_of.keys()) of.push_back(graph.switches[graph.leaf_of[nic]].pod);
    return of;
  };
  EXPECT_EQ(pods(), (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1}));
  cluster.topology.placement = TopologySpec::Placement::spread;
  EXPECT_EQ(pods(), (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2}));
  cluster.topology.placement = TopologySpec::Placement::random;
  const auto one = pods();
  EXPECT_EQ(pods(), one);
  cluster.topology.seed = 5;
  EXPECT_NE(pods(), one);
}

TEST(Placement, IsTakenFromAFile) {
  EXPECT_EQ(parse_places("0-1 4-5  # a pod\n\n3 0\n2,4 1,3\n", "p.txt", 5, 6),
            (std::vector<int>{4, 5, 1, 0, 3}));
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_places(text, "p.txt", 3, 6); });
  };
  EXPECT_EQ(error("0-2 1-3\n"), "");
  EXPECT_EQ(error("0-2\n"), "p.txt:1:1: '0-2' is not NODES PLACES; write for example 0-3 8-11");
  EXPECT_EQ(error("0-1 1-3\n"), "p.txt:1:1: 2 nodes and 3 places; name as many of each");
  EXPECT_EQ(error("0-1 0-1\n3 2\n"),
            "p.txt:2:1: there is no node 3: the job has 3, and numbers begin at 0");
  EXPECT_EQ(error("0-2 4-6\n"),
            "p.txt:1:1: there is no place 6: the fabric has 6 (cluster.topology.places), from 0 "
            "on");
  EXPECT_EQ(error("0-1 1-2\n1 3\n"), "p.txt:2:1: node 1 has a place already; name it once");
  EXPECT_EQ(error("0-1 1-2\n2 1\n"), "p.txt:2:1: place 1 is taken already; one node fits");
  EXPECT_EQ(error("0-1 1-2\n"), "p.txt:1:1: node 2 has no place; every node from 0 to 2 needs one");
}

TEST(Placement, OfAFileIsFoundBesideTheJob) {
  const test::Folder folder;
  folder.write("places.txt", "0,2 0-1\n1,3 4-5\n");
  const LoadedJob job = load_job(folder.write("job.yaml",
                                              "schema: ghostrank/job/1\nmodel: gpt2\ndevice: "
                                              "h100-sxm\ncluster: {nodes: 4, gpus_per_node: "
                                              "1, nics_per_node: 1, topology: {kind: fat_tree, "
                                              "places: 6, pods: 3, leaves: 3, placement: "
                                              "places.txt}}\n"),
                                 {});
  const SwitchGraph graph = switches_of(job.spec.cluster);
  std::vector<std::uint32_t> pods;
  for (const Nic nic : graph.leaf_of.keys()) pods.push_back(graph.switches[graph.leaf_of[nic]].pod);
  EXPECT_EQ(pods, (std::vector<std::uint32_t>{0, 2, 0, 2}));
}

TEST(Cables, FailOrSlowDownByName) {
  ClusterSpec cluster = cluster_of(4, 1, Kind::leaf_spine);
  cluster.topology.leaves = 2;
  cluster.topology.spines = 2;
  cluster.topology.failed = {"leaf0-spine1"};
  cluster.topology.degraded = {{"leaf1-spine0", 1e9}};
  const SwitchGraph graph = switches_of(cluster);
  EXPECT_TRUE(graph.cables[1].failed);
  EXPECT_EQ(graph.cables[2].bps, 1e9);
  cluster.topology.failed = {"leaf0-spine0", "leaf0-spine1"};
  EXPECT_EQ(error_of([&] { switches_of(cluster); }),
            "cluster.topology: no path leads from leaf0 to leaf1, and nodes are connected to both; "
            "add links, or let fewer fail");
}

// ---- Files ----

TEST(FileOfLinks, IsReadAsCsvAndAsJson) {
  const ClusterSpec cluster = cluster_of(4, 2, Kind::file);
  const SwitchGraph csv = parse_topology(
      "from,to,rate\n# two racks\nn0-1,tor0\nn2,tor1\nn3.nic0,tor0\nn3.nic1,tor1\n"
      "tor0,core,100Gbps\ntor0,core,100Gbps\ntor1,core,200Gbps\n",
      "a.csv", cluster);
  const SwitchGraph json = parse_topology(
      R"({"links": [{"from": "n0-1", "to": "tor0"}, {"from": "n2", "to": "tor1"},
          {"from": "n3.nic0", "to": "tor0"}, {"from": "n3.nic1", "to": "tor1"},
          {"from": "tor0", "to": "core", "rate": "100Gbps"},
          {"from": "tor0", "to": "core", "rate": "100Gbps"},
          {"from": "tor1", "to": "core", "rate": "200Gbps"}]})",
      "a.json", cluster);
  for (const SwitchGraph* graph : {&csv, &json}) {
    EXPECT_EQ(graph->leaves, 2u);
    ASSERT_EQ(graph->cables.size(), 3u);
    EXPECT_EQ(cable_name(*graph, 0), "tor0-core");
    EXPECT_EQ(cable_name(*graph, 1), "tor0-core.2");
    EXPECT_EQ(graph->cables[2].bps, 200e9);
    EXPECT_EQ(graph->switches[0].nics, 5);
    EXPECT_EQ(graph->leaf_of[Nic(7)], 1u);
  }
}

// A link from b to a is a further cable beside that from a to b.
TEST(FileOfLinks, GivesEveryCableANameOfItsOwn) {
  ClusterSpec cluster = cluster_of(2, 1, Kind::file);
  const auto cables = [&](const std::string& links) {
    cluster.topology.file = std::make_shared<const SwitchGraph>(
        parse_topology("n0,a\nn1,b\n" + links, "a.csv", cluster));
    return switches_of(cluster).cables;
  };
  const std::string both = "a,b,1Gbps\nb,a,2Gbps\na,b,3Gbps\n";
  cluster.topology.failed = {"a-b", "a-b.2"};
  const std::vector<SwitchGraph::Cable> three = cables(both);
  ASSERT_EQ(three.size(), 3u);
  for (std::uint32_t c = 0; c < 3; ++c) {
    EXPECT_EQ(three[c].bps, (c + 1) * 1e9);
    EXPECT_EQ(three[c].failed, c < 2);
  }
  cluster.topology.failed = {"a-b.2"};
  EXPECT_EQ(error_of([&] { cables(both + "a,b.2,1Gbps\n"); }),
            "cluster.topology.failed: two links are called 'a-b.2'; give a switch at their ends "
            "another name");
}

// As spreadsheets write them: columns in any order, a byte order mark.
TEST(FileOfLinks, TakesColumnsByTheirNames) {
  const SwitchGraph graph =
      parse_topology("\xef\xbb\xbfrate,to,from\n,tor0,n0\n,tor1,n1\n100Gbps,tor1,tor0\n", "a.csv",
                     cluster_of(2, 1, Kind::file));
  EXPECT_EQ(graph.leaves, 2u);
  ASSERT_EQ(graph.cables.size(), 1u);
  EXPECT_EQ(graph.cables[0].bps, 100e9);
}

TEST(FileOfLinks, SaysWhereItIsWrong) {
  const ClusterSpec cluster = cluster_of(2, 2, Kind::file);
  const auto error = [&](const std::string& text) {
    return error_of([&] { parse_topology(text, "f.csv", cluster); });
  };
  EXPECT_EQ(error("n0-1,a\n"), "");
  EXPECT_EQ(error("n0,a\n"),
            "f.csv: no link connects n1.nic0 to a switch; add one, as in  n1,tor0");
  EXPECT_EQ(error("n0,a\nn0.nic1,b\n"),
            "f.csv:2:1: n0.nic1 is connected twice; a NIC has one port");
  EXPECT_EQ(error("n0-2,a\n"), "f.csv:1:1: 'n0-2': the job has nodes n0 to n1");
  EXPECT_EQ(error("n0.nic2,a\n"), "f.csv:1:1: 'n0.nic2': a node has NICs nic0 to nic1");
  EXPECT_EQ(error("n0,a,1Gbps\n"),
            "f.csv:1:1: the rate of a NIC is cluster.nic.rate; leave it out here");
  EXPECT_EQ(error("n0-1,a\na,b\n"),
            "f.csv:2:1: a link between switches needs a rate, as in  a,b,400Gbps");
  EXPECT_EQ(error("a,n0\n"), "f.csv:1:1: write the NIC first: n0,a");
  EXPECT_EQ(error("n0,n1\n"), "f.csv:1:1: 'n0' and 'n1' are both NICs; connect each to a switch");
  EXPECT_EQ(error("n0,a,b,c\n"),
            "f.csv:1:1: a link has from, to and, between switches, a rate; 'b,c' is more than one "
            "field");
  EXPECT_EQ(error("from,to,speed\nn0-1,a\n"),
            "f.csv:1:1: unknown column 'speed'; known here: from, to, rate");
  EXPECT_EQ(error("from,to,to\nn0-1,a\n"), "f.csv:1:1: the column 'to' is there twice; remove one");
  EXPECT_EQ(error("from,rate\nn0-1,1Gbps\n"),
            "f.csv:1:1: a link needs both ends: the columns from and to");
}

TEST(CableNames, FindCablesByTheLinksOfBothDirections) {
  SwitchGraph graph;
  for (const char* name : {"leaf-0", "spine.1"}) graph.switches.emplace_back().name = name;
  graph.cables = {{0, 1, 1e9}, {0, 1, 1e9}};
  const CableNames names(graph);
  EXPECT_EQ(names.all(), (std::vector<std::string>{"leaf-0-spine.1", "leaf-0-spine.1.2"}));
  for (const std::uint32_t cable : {0u, 1u}) {
    EXPECT_EQ(names.find(cable_name(graph, cable)), std::vector{cable});
    EXPECT_EQ(names.find(cable_name_back(graph, cable)), std::vector{cable});
  }
  EXPECT_EQ(cable_name_back(graph, 1), "spine.1-leaf-0.2");
  EXPECT_TRUE(names.find("leaf-0-spine.1.3").empty());
}

}  // namespace
}  // namespace ghostrank
