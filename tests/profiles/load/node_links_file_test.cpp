// Links between a node's GPUs: the keys of a job, and files.
#include <string>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/load/files/node_links.h"
#include "profiles/load/load.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

std::string linked_job(const std::string& cluster) {
  return "model: resnet50\ndevice: v100-sxm2\ncluster: {nodes: 1, " + cluster +
         "}\nfabric: {kind: virtual}\n";
}

std::string refused_links(const std::string& text) {
  try {
    parse_node_links(text, "links.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NodeLinks, OfANamedNodeAreThoseOfTheGpusThatAJobGot) {
  const test::Folder folder;
  const LoadedJob loaded = load_job(
      folder.write("job.yaml", linked_job("intra_node: {links: dgx-1v, gpus: [3, 0, 5]}")), {});
  const ClusterSpec& cluster = loaded.spec.cluster;
  ASSERT_NE(cluster.links, nullptr);
  EXPECT_EQ(cluster.gpus_per_node, 3);
  EXPECT_EQ(cluster.links->between(0, 1), 400e9);  // GPUs 3 and 0: two lanes
  EXPECT_EQ(cluster.links->between(1, 0), 400e9);
  EXPECT_EQ(cluster.links->between(0, 2), 0);
  EXPECT_EQ(cluster.intra_node.rate_bps, 96e9);
  const LoadedJob given = load_job(
      folder.write("job.yaml", linked_job("intra_node: {links: dgx-1p, rate: 80Gbps}")), {});
  EXPECT_EQ(given.spec.cluster.gpus_per_node, 8);
  EXPECT_EQ(given.spec.cluster.intra_node.rate_bps, 80e9);
  EXPECT_EQ(given.spec.cluster.links->between(0, 4), 160e9);
  // As a result says it, with every key and the file's text in place of its name.
  folder.write("links.csv", "a,b,rate\n0,1,10Gbps\n1,2,20Gbps\n0,1,10Gbps\n");
  const LoadedJob of_file = load_job(
      folder.write("job.yaml", linked_job("gpus_per_node: 2, intra_node: {links: links.csv}")), {});
  EXPECT_EQ(of_file.spec.cluster.links->between(0, 1), 20e9);
  const LoadedJob again = load_job(folder.write("again.yaml", of_file.config_json), {});
  EXPECT_EQ(again.spec.cluster.links->bps, of_file.spec.cluster.links->bps);
  const LoadedJob chosen = load_job(folder.write("again.yaml", loaded.config_json), {});
  EXPECT_EQ(*chosen.spec.cluster.links, *cluster.links);
  EXPECT_EQ(chosen.spec.cluster.intra_node.rate_bps, 96e9);
}

TEST(NodeLinks, SayWhatIsWrongWithThem) {
  const auto error = [](const std::string& cluster) {
    return test::load_error(linked_job(cluster));
  };
  EXPECT_NE(error("intra_node: {links: dgx-2}")
                .find("job.yaml:3:41: cluster.intra_node.links is 'dgx-2'; write none, dgx-1p"),
            std::string::npos);
  EXPECT_NE(error("intra_node: {links: dgx-1v, gpus: [0, 8]}")
                .find("cluster.intra_node.gpus: the node has GPUs 0 to 7, no 8"),
            std::string::npos);
  EXPECT_NE(error("intra_node: {links: dgx-1v, gpus: [1, 1]}")
                .find("cluster.intra_node.gpus names GPU 1 twice"),
            std::string::npos);
  EXPECT_NE(error("gpus_per_node: 4, intra_node: {links: dgx-1v, gpus: [0, 1]}")
                .find("cluster.gpus_per_node is 4, but cluster.intra_node.gpus names 2 GPUs"),
            std::string::npos);
  EXPECT_NE(error("gpus_per_node: 16, intra_node: {links: dgx-1v}")
                .find("cluster.gpus_per_node is 16, but cluster.intra_node.links describes 8 GPUs"),
            std::string::npos);
  EXPECT_NE(error("gpus_per_node: 2, intra_node: {gpus: [0, 1]}").find("cluster.intra_node.gpus"),
            std::string::npos);
  EXPECT_EQ(refused_links("a,b,rate\n0,0,1Gbps\n"),
            "links.csv:2:1: a link from GPU 0 to itself; leave it out");
  EXPECT_EQ(refused_links("a,b,rate\n0,16,1Gbps\n").find("links.csv:2:1: '16' is no GPU"), 0u);
  EXPECT_EQ(refused_links("a,b,rate\n0,1,fast\n").find("links.csv:2:1: 'fast' is no rate"), 0u);
  EXPECT_EQ(refused_links("a,b,rate\n0,1\n").find("links.csv:2:1: a link is two GPUs and a rate"),
            0u);
  EXPECT_EQ(refused_links("a,b\n0,1\n").find("links.csv:1:1: a file of links has the columns"), 0u);
  EXPECT_EQ(refused_links("a,b,rate\n").find("links.csv:1:1: there is no link"), 0u);
}

}  // namespace
}  // namespace ghostrank
