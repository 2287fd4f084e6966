// The real machines of a job and the placement of emulated nodes on them.
#include "profiles/load/sections/hosts.h"

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::load_error;
using test::load_text;

const std::string kEightNodes =
    "model: {kind: layers, layers: [{parameters: [5]}]}\n"
    "cluster: {nodes: 8, nics_per_node: 2}\n";

const std::vector<std::string> kSeveral{"fabric.kind=ofi"};  // in one process nothing is placed

std::vector<int> placed(const std::string& rest) {
  std::vector<int> hosts;
  for (const Host host : load_text(kEightNodes + rest, kSeveral).spec.placement.host_of_node)
    hosts.push_back(host.value());
  return hosts;
}

TEST(Hosts, AreReadWithCoresAndRails) {
  const JobSpec job = load_text(kEightNodes +
                                    "hosts:\n"
                                    "- {name: s1, cores: 0-3}\n"
                                    "- {name: s2, cores: '0-1,6', nics: [{device: eth1, rail: 1}, "
                                    "{device: eth0, rail: 0}]}\n"
                                    "- {name: s3, cores: 4, nics: [{device: a}, {device: b}]}\n",
                                kSeveral)
                          .spec;
  ASSERT_EQ(job.hosts.size(), 3u);
  EXPECT_EQ(job.hosts[0].name, "s1");
  EXPECT_EQ(job.hosts[0].cores, "0-3");
  EXPECT_TRUE(job.hosts[0].nics.empty());
  ASSERT_EQ(job.hosts[1].nics.size(), 2u);
  EXPECT_EQ(job.hosts[1].nics[0].device, "eth0");
  EXPECT_EQ(job.hosts[1].nics[1].device, "eth1");
  EXPECT_EQ(job.hosts[1].nics[1].rail, 1);
  EXPECT_EQ(job.hosts[2].cores, "4");
  EXPECT_EQ(job.hosts[2].nics[1].device, "b");
}

TEST(Hosts, SayWhatIsWrongWithThem) {
  const auto text = [](const std::string& hosts) {
    return load_error(kEightNodes + "hosts: " + hosts + "\n");
  };
  EXPECT_EQ(text("s1"),
            "job.yaml:3:8: hosts is 's1'; write a list, as in [{name: s1, cores: 0-15}]");
  EXPECT_EQ(text("[{cores: 1}]"),
            "job.yaml:3:9: host has no name; add it: its host name, short or full, or an address; "
            "two processes of one machine are two entries of one name");
  EXPECT_EQ(text("[{name: s1, cors: 1}]"),
            "job.yaml:3:20: unknown key 'cors'; did you mean cores?");
  EXPECT_EQ(text("[{name: s1, cores: 3-1}]"),
            "job.yaml:3:27: cores is '3-1'; write CPU numbers, each once, as in 0-15 or "
            "'0-7,16-23'");
  EXPECT_EQ(text("[{name: a b}]"),
            "job.yaml:3:16: 'a b' is no name of a host; write its host name");
  EXPECT_EQ(text("[{name: s1, nics: [{device: eth0, rail: 1}]}]"),
            "job.yaml:3:48: the rails of host 's1' must be 0 to 0, each once; found 1");
  EXPECT_EQ(text("[{name: s1, nics: [{device: a, rail: 0}, {device: b, rail: 0}]}]"),
            "job.yaml:3:67: the rails of host 's1' must be 0 to 1, each once; found 0 twice");
  EXPECT_EQ(text("[{name: s1, nics: [{device: a}, {device: b}, {device: c}]}]"),
            "job.yaml:3:53: rail 2 of host 's1' carries nothing: a node has "
            "cluster.nics_per_node = 2 NICs; remove it");
}

TEST(Placement, IsReadFromAFileThatNamesHostsOrNumbers) {
  const test::Folder folder;
  const std::string file = folder.write("nodes.txt",
                                        "# the first rack\n"
                                        "0-2,7 s1\n"
                                        "\n"
                                        "3-5   s2   # the second\n"
                                        "6     2\n");
  const std::string hosts = "hosts: [{name: s1}, {name: s2}, {name: s3}]\n";
  const std::vector<int> expected{0, 0, 0, 1, 1, 1, 2, 0};
  EXPECT_EQ(placed(hosts + "placement: " + file + "\n"), expected);
  EXPECT_EQ(placed("placement: ['0-2,7 0', 3-5 1, 6 2]\n"), expected);
}

TEST(Placement, IsWrittenOutInTheResolvedJobSoThatAReplayNeedsNoFile) {
  const test::Folder folder;
  const std::string file = folder.write("nodes.txt", "0-2,7 s1\n3-6 s2\n");
  const std::string hosts = "hosts: [{name: s1, cores: 0-3, nics: [{device: eth0}]}, {name: s2}]\n";
  const LoadedJob first = load_text(kEightNodes + hosts + "placement: " + file + "\n", kSeveral);
  EXPECT_EQ(first.config_json.find("nodes.txt"), std::string::npos);
  const LoadedJob again = load_text(first.config_json);
  EXPECT_EQ(again.config_json, first.config_json);
  EXPECT_EQ(again.spec.placement.host_of_node, first.spec.placement.host_of_node);
  ASSERT_EQ(again.spec.hosts.size(), 2u);
  EXPECT_EQ(again.spec.hosts[0].cores, "0-3");
  EXPECT_EQ(again.spec.hosts[0].nics[0].device, "eth0");
}

TEST(Placement, SaysWhichLineIsWrong) {
  const test::Folder folder;
  const auto text = [&](const std::string& lines, const std::string& hosts = "") {
    const std::string file = folder.write("nodes.txt", lines);
    return test::error_of(
        [&] { load_text(kEightNodes + hosts + "placement: " + file + "\n", kSeveral); });
  };
  const auto has = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  const std::string hosts = "hosts: [{name: rack1}, {name: twin}, {name: twin}]\n";
  has(text("0-7\n"), "nodes.txt:1:1: '0-7' is not NODES HOST; write for example 0-3,8 s1");
  has(text("0-8 0\n"),
      "nodes.txt:1:1: there is no node 8: cluster.nodes is 8, and numbers begin at 0");
  has(text("0-3 0\n3-7 1\n"), "nodes.txt:2:1: node 3 has a host already; name it once");
  has(text("0-3 0\n5-7 1\n"), "nodes.txt:2:1: the placement gives node 4 no host");
  has(text("0-7 rack2\n", hosts), "nodes.txt:1:1: there is no host 'rack2'; did you mean rack1?");
  has(text("0-7 twin\n", hosts), "nodes.txt:1:1: hosts has 2 entries called 'twin'");
  has(text("0-7 3\n", hosts), "nodes.txt:1:1: there is no host '3'");
  has(text("0-7 s1\n"), "nodes.txt:1:1: there is no host 's1'; write the number of a process");
  EXPECT_EQ(load_error(kEightNodes + "placement: nowhere.txt\n", kSeveral),
            "job.yaml:3:12: placement is 'nowhere.txt'; write blocked, cyclic, or the path of a "
            "file with lines of NODES HOST (there is no such file)");
}

}  // namespace
}  // namespace ghostrank
