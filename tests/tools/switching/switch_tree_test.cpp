// Leaves and a spine that serve a job as one switch: the port of each that leads to a node, and the
// part of a job that each serves.
#include "tools/switching/switch_tree.h"

#include <string>

#include <gtest/gtest.h>

#include "switch/wire/switchml.h"

namespace ghostrank {
namespace {

SwitchTree tree(int nodes, int nics, int leaves) {
  SwitchSpec spec;
  spec.target = SwitchTarget::compiled;
  spec.address = "10.0.0.254";
  spec.mac = "02:00:00:00:ff:01";
  spec.nics = nics;
  spec.leaves = leaves;
  return {spec, nodes};
}

// A job whose worker w is at the job's port `ports[w]`.
SwitchJob job_at(const std::vector<int>& ports) {
  SwitchJob job{.name = "a", .elements = 256, .first_slot = 0, .slots = 8, .worker_port = 4016};
  for (const int port : ports) job.workers.push_back({port, "", "10.0.0." + std::to_string(port)});
  return job;
}

// "at/first_worker:port=ip*workers ...^uplink" of every switch.
std::string told(const SwitchTree& tree, const SwitchJob& job) {
  std::string text;
  for (const SwitchPart& part : tree.parts_of(job)) {
    text += (text.empty() ? "" : " | ") + std::to_string(part.at) + "/" +
            std::to_string(part.first_worker) + ":";
    for (const SwitchPart::Member& m : part.members)
      text += " " + std::to_string(m.port) + "=" + m.ip.substr(7) + "*" + std::to_string(m.workers);
    if (part.uplink >= 0) text += " ^" + std::to_string(part.uplink);
  }
  return text;
}

TEST(SwitchTree, LeadsEveryFrameThroughTheSwitchesToItsNode) {
  for (const int leaves : {1, 2, 3, 7}) {
    const SwitchTree t = tree(7, 2, leaves);
    int ports = 0;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      EXPECT_EQ(t.begin(leaf), ports);
      EXPECT_EQ(t.begin(leaf) % 2, 0) << "a node's NICs are on one leaf";
      EXPECT_LE(t.end(leaf) - t.begin(leaf), 2 * (7 / leaves + 1));
      ports = t.end(leaf);
      EXPECT_EQ(t.ports(leaf), t.end(leaf) - t.begin(leaf) + (leaves > 1));
      for (int port = 0; port < 14; ++port) {
        const bool here = t.begin(leaf) <= port && port < t.end(leaf);
        EXPECT_EQ(t.towards(leaf, port), here ? port - t.begin(leaf) : t.ports(leaf) - 1);
        if (!here || !t.has_spine()) continue;
        EXPECT_EQ(t.towards(t.switches() - 1, port), leaf);
      }
    }
    EXPECT_EQ(ports, 14);
  }
}

TEST(SwitchTree, TellsEverySwitchItsPartOfAJob) {
  EXPECT_EQ(told(tree(4, 1, 1), job_at({0, 1, 3})), "0/0: 0=0*1 1=1*1 3=3*1");
  EXPECT_EQ(told(tree(5, 1, 2), job_at({0, 2, 3, 4})),
            "0/0: 0=0*1 2=2*1 ^3 | 1/2: 0=3*1 1=4*1 ^2 | 2/0: 0=254*2 1=254*2");
  EXPECT_EQ(told(tree(4, 2, 2), job_at({1, 3, 7})),
            "0/0: 1=1*1 3=3*1 ^4 | 1/2: 3=7*1 ^4 | 2/0: 0=254*2 1=254*1");
  for (const SwitchPart& part : tree(4, 1, 2).parts_of(job_at({0, 3})))
    EXPECT_EQ(part.worker_port, part.at == 2 ? switchml::kUdpPort : 4016);
}

TEST(SwitchTree, NeedsNoSpineForAJobBehindOneLeaf) {
  EXPECT_EQ(told(tree(4, 1, 2), job_at({2, 3})), "1/0: 0=2*1 1=3*1");
}

// With functions besides all-reduce, a leaf tells by a worker's number whether it is its own.
TEST(SwitchTree, RefusesWorkersOutOfTheOrderOfTheirLeavesWhereNumbersCount) {
  SwitchJob job = job_at({0, 2, 1});
  EXPECT_EQ(tree(4, 1, 2).reason_to_refuse(job), "");
  job.all_functions = true;
  EXPECT_NE(tree(4, 1, 2).reason_to_refuse(job).find("not in the order of their nodes"),
            std::string::npos);
  EXPECT_EQ(tree(4, 1, 1).reason_to_refuse(job), "");
}

}  // namespace
}  // namespace ghostrank
