// The flows of a job, and the flow that each message takes.
#include "emulator/traffic/flows.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr int kNodes = 4, kGpus = 2;

SmallJob job_with(FlowKind kind, const char* algorithm = "ring") {
  SmallJob job(kNodes, kGpus, FabricKind::ofi);
  job.spec.fabric.flows = kind;
  job.spec.collectives.algorithm(Func::all_reduce) = algorithm;
  job.spec.collectives.channels = 3;
  job.collective(Func::all_reduce, 3000);
  return job;
}

// Each flow must have one number; otherwise messages would arrive in the wrong place.
void expect_consistent(const Flows& flows, int hosts) {
  std::set<std::pair<int, int>> joined;
  for (const Flow& f : flows.flows()) {
    EXPECT_NE(f.end[0], f.end[1]);
    EXPECT_TRUE(joined.insert(std::minmax({f.end[0], f.end[1]})).second)
        << "a provider joins two endpoints once";
  }
  std::size_t ends = 0;
  for (const Host h : each<Host>(hosts)) {
    for (int s = 0; s < flows.shards(); ++s) {
      const std::vector<FlowEnd>& mine = flows.of(h, s);
      ends += mine.size();
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const Flow& f = flows.flows()[mine[i].flow];
        EXPECT_EQ(f.index[mine[i].end], static_cast<int>(i));
        EXPECT_EQ(flows.endpoint(mine[i]).host, h);
        EXPECT_EQ(flows.endpoint(mine[i]).shard, s);
      }
    }
  }
  EXPECT_EQ(ends, 2 * flows.flows().size());
}

class FlowsOf {
 public:
  FlowsOf(const SmallJob& job, int hosts)
      : cluster(job.spec, job.workload, hosts), flows(job.spec, job.workload, cluster) {
    expect_consistent(flows, hosts);
  }
  const Cluster cluster;
  const Flows flows;
};

TEST(Flows, JoinEveryPairOfShards) {
  SmallJob job = job_with(FlowKind::process);
  EXPECT_EQ(FlowsOf(job, 4).flows.flows().size(), 6u);
  EXPECT_EQ(FlowsOf(job, 2).flows.flows().size(), 1u);
  EXPECT_EQ(FlowsOf(job, 1).flows.flows().size(), 0u);
  job.spec.run.shards = 2;
  EXPECT_EQ(FlowsOf(job, 2).flows.flows().size(), 4u);
}

TEST(Flows, JoinThePairsOfNicsThatTheJobUses) {
  const SmallJob job = job_with(FlowKind::nic);
  const FlowsOf f(job, 4);
  std::set<std::pair<Nic, Nic>> pairs;
  for (const Connection& c : plan_connections(job.spec, job.workload)) {
    const Location &from = f.cluster.location(c.from), &to = f.cluster.location(c.to);
    if (from.node != to.node) pairs.insert(std::minmax({from.nic, to.nic}));
  }
  EXPECT_GT(pairs.size(), 0u);
  EXPECT_EQ(f.flows.flows().size(), pairs.size());
}

TEST(Flows, GiveEveryConnectionOfTheLibraryOneOfItsOwn) {
  const SmallJob job = job_with(FlowKind::connection);
  const FlowsOf f(job, 4);
  std::size_t between = 0;
  std::set<std::pair<Host, int>> taken;  // flow index by sending shard
  for (const Connection& c : plan_connections(job.spec, job.workload)) {
    const Location &from = f.cluster.location(c.from), &to = f.cluster.location(c.to);
    if (!f.flows.carries(from, to)) continue;
    ++between;
    Header data;
    data.group = c.group;
    data.channel = c.channel;
    const int flow = f.flows.index_of(c.from, c.to, data, c.nics);
    ASSERT_GE(flow, 0);
    EXPECT_TRUE(taken.insert({from.host, flow}).second) << "shared by two connections";
    Header credit = data;
    credit.kind = MessageKind::credit;
    const int back = f.flows.index_of(c.to, c.from, credit, {c.nics.target, c.nics.source});
    ASSERT_GE(back, 0);
    EXPECT_EQ(f.flows.of(from.host, 0)[flow].flow,
              f.flows.of(to.host, 0)[static_cast<std::size_t>(back)].flow)
        << "a credit takes the flow of its data";
    Header permission = data;
    permission.kind = MessageKind::permission;
    EXPECT_EQ(f.flows.index_of(c.to, c.from, permission, {c.nics.target, c.nics.source}), back)
        << "no data goes its way";
    EXPECT_EQ(f.flows.index_of(c.from, c.to, permission, c.nics), flow) << "behind data";
    data.channel = 99;
    EXPECT_EQ(f.flows.index_of(c.from, c.to, data, c.nics), -1);
  }
  EXPECT_EQ(f.flows.flows().size(), between);
  EXPECT_GE(between, 3u * kNodes);  // three rings
}

TEST(Flows, NeedFewEndpointsForManyConnections) {
  SmallJob job = job_with(FlowKind::connection);
  job.spec.cluster.nics_per_node = 1;
  job.spec.collectives.channels = 16;
  const FlowsOf f(job, 2);  // nodes 1 and 2, and 3 and 0, are neighbours on different hosts
  EXPECT_EQ(f.flows.flows().size(), 32u);
  EXPECT_EQ(f.flows.endpoints().size(), 4u * 4);  // four endpoints have sixteen pairs
}

TEST(Flows, JoinNodesOfOneProcessOnTheWire) {
  SmallJob job = job_with(FlowKind::process);
  job.spec.fabric.colocated = Colocated::wire;
  EXPECT_EQ(FlowsOf(job, 1).flows.flows().size(), 6u);
  const FlowsOf two(job, 2);
  EXPECT_EQ(two.flows.flows().size(), 6u);
  EXPECT_TRUE(two.flows.carries(two.cluster.location(WorldRank(0)),
                                two.cluster.location(WorldRank(kGpus))));
  EXPECT_FALSE(
      two.flows.carries(two.cluster.location(WorldRank(0)), two.cluster.location(WorldRank(1))));
  std::vector<std::array<int, 3>> per_pair;
  for (const FlowCount& count : two.flows.per_host_pair())
    per_pair.push_back({count.host.value(), count.peer.value(), count.flows});
  EXPECT_EQ(per_pair, (std::vector<std::array<int, 3>>{{0, 0, 1}, {0, 1, 4}, {1, 1, 1}}));
}

}  // namespace
}  // namespace ghostrank
