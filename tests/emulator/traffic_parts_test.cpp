// Where ranks are, what their schedules do, and when NICs are free.
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/network/port.h"
#include "emulator/traffic/call_traffic.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/longest_chain.h"
#include "emulator/traffic/step_table.h"
#include "profiles/error.h"
#include "tests/emulator/plugins.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

TEST(Cluster, SpreadsNodesOverHostsAndShardsWithoutSplittingOne) {
  testing::SmallJob job(7, 2, FabricKind::memory);
  job.spec.run.shards = 2;
  for (bool cyclic : {false, true}) {
    job.spec.placement.cyclic = cyclic;
    const Cluster cluster(job.spec, job.workload, 3);
    std::size_t ranks = 0;
    for (const Host h : each<Host>(3)) {
      for (int s = 0; s < 2; ++s) {
        ranks += cluster.ranks_of(h, s).size();
        EXPECT_FALSE(cluster.ranks_of(h, s).empty());
      }
    }
    EXPECT_EQ(ranks, 14u);
    for (WorldRank r; r < WorldRank(14); r = r + 2) {
      EXPECT_EQ(cluster.location(r).host, cluster.location(r + 1).host);
      EXPECT_EQ(cluster.location(r).shard, cluster.location(r + 1).shard);
    }
    EXPECT_EQ(cluster.location(WorldRank(2)).host, Host(cyclic ? 1 : 0));
  }
}

// The first group's nodes 0, 0, 1, 2 and its one NIC read like nodes 0, 0, one NIC, GPUs 2 and 1.
TEST(Cluster, GroupsOfDifferentSizesHaveDifferentLayouts) {
  testing::SmallJob job(3, 4, FabricKind::virtual_time);
  job.spec.collectives.library = "nccl-2.28";
  job.spec.cluster.nics_per_node = 1;
  job.workload.groups[0].members = {WorldRank(0), WorldRank(1), WorldRank(4), WorldRank(8)};
  job.workload.group_names.push_back("turned");
  job.workload.groups.push_back({1, {WorldRank(2), WorldRank(1)}});
  const Cluster cluster(job.spec, job.workload, 1);
  EXPECT_EQ(cluster.nodes_of_layout(cluster.layout(0)).size(), 4u);
  EXPECT_EQ(cluster.nodes_of_layout(cluster.layout(1)).size(), 2u);
  EXPECT_EQ(cluster.gpus_of_layout(cluster.layout(1)), (std::vector<std::int32_t>{2, 1}));
}

// A send looks on its own node for the GPU of the receiver: the first group's node 1 has GPUs 0 to
// 3, of which node 0 has two.
TEST(Cluster, LayoutsSayOnWhichGpusRanksAreWhereNodesHaveDifferentOnes) {
  testing::SmallJob job(3, 4, FabricKind::virtual_time);
  job.spec.collectives.library = "nccl-2.28";
  const auto gpus_of = [&](const std::vector<int>& ranks) {
    job.workload.groups[0].members.clear();
    for (const int rank : ranks) job.workload.groups[0].members.push_back(WorldRank(rank));
    const Cluster cluster(job.spec, job.workload, 1);
    return cluster.gpus_of_layout(cluster.layout(0));
  };
  EXPECT_EQ(gpus_of({2, 3, 4, 5, 6, 7}), (std::vector<std::int32_t>{2, 3, 0, 1, 2, 3}));
  EXPECT_TRUE(gpus_of({0, 1, 4, 5, 6, 7}).empty());
  EXPECT_TRUE(gpus_of({0, 5, 10}).empty());  // a rank on each node looks for no other
}

// All-reduces on a started switch of groups with these members, each on 16 slots.
testing::SmallJob on_switch(int nodes, int gpus, const std::vector<std::vector<int>>& groups) {
  testing::SmallJob job(nodes, gpus, FabricKind::packets);
  job.spec.collectives.algorithm(Func::all_reduce) = "switchml";
  job.spec.collectives.in_switch.slots = 16;
  job.spec.network_switch.target = SwitchTarget::compiled;
  job.collective(Func::all_reduce, 1000);
  Op op = job.program().streams[0][0];
  job.program().streams[0] = {};
  job.workload.group_names.clear();
  job.workload.groups.clear();
  for (const std::vector<int>& members : groups) {
    Group& group = job.workload.groups.emplace_back();
    op.group = group.kind = static_cast<std::uint16_t>(job.workload.group_names.size());
    for (const int rank : members) group.members.emplace_back(rank);
    job.workload.group_names.push_back("g" + std::to_string(op.group));
    job.program().streams[0].push_back(op);
  }
  return job;
}

std::vector<int> first_slots(const testing::SmallJob& job) {
  const Cluster cluster(job.spec, job.workload, 1);
  std::vector<int> slots;
  for (const SchemeUse& use : cluster.schemes()) slots.push_back(use.first_slot);
  return slots;
}

// A group inside a node does not send to the switch.
TEST(Cluster, GivesSlotsOfTheSwitchToGroupsThatUseIt) {
  testing::SmallJob job = on_switch(2, 2, {{0, 1}, {0, 2}, {1, 3}});
  job.spec.cluster.nics_per_node = 1;
  EXPECT_EQ(first_slots(job), (std::vector<int>{0, 0, 16}));
  job.spec.cluster.nics_per_node = 2;
  EXPECT_EQ(first_slots(job), (std::vector<int>{0, 0, 0}));
}

// A plug-in's scheme has as many slots as it says, not switch.slots (16 here).
TEST(Cluster, GivesASchemeTheSlotsThatItHas) {
  testing::SmallJob job = on_switch(2, 2, {{0, 2}, {1, 3}});
  job.spec.cluster.nics_per_node = 1;
  job.spec.collectives.own = testing::load_plugins({GHOSTRANK_AGENTS_PLUGIN});
  job.spec.collectives.algorithm(Func::all_reduce) = "test/many-slots";
  EXPECT_EQ(first_slots(job), (std::vector<int>{0, 1000}));
}

// A leaf has one link to the spine, on which packets are told apart by their slots alone.
TEST(Cluster, TellsGroupsApartOnTheLinksBetweenLeavesAndTheSpine) {
  testing::SmallJob job = on_switch(4, 1, {{0, 2}, {1, 3}, {0, 1}, {2, 3}});
  EXPECT_EQ(first_slots(job), (std::vector<int>{0, 0, 16, 16}));
  job.spec.network_switch.leaves = 2;
  EXPECT_EQ(first_slots(job), (std::vector<int>{0, 16, 32, 32}));
  testing::SmallJob rails = on_switch(4, 2, {{0, 1, 2, 3}});
  rails.spec.cluster.nics_per_node = 2;
  rails.spec.network_switch.leaves = 2;
  EXPECT_EQ(first_slots(rails), (std::vector<int>{0})) << "behind one leaf";
  rails = on_switch(4, 2, {{0, 1, 4, 5}});
  rails.spec.cluster.nics_per_node = 2;
  EXPECT_EQ(first_slots(rails), (std::vector<int>{0}));
  rails.spec.network_switch.leaves = 2;
  EXPECT_THROW(first_slots(rails), Error);
}

// Both kinds of group have the same members and calls, and algorithms of their own.
TEST(Plan, CountsEachKindOfGroupByItsOwnAlgorithm) {
  testing::SmallJob job(4, 1, FabricKind::virtual_time);
  job.spec.collectives.algorithm(Func::all_reduce) = "ring";
  job.spec.collectives.groups["other"][Func::all_reduce] = "double_tree";
  job.collective(Func::all_reduce, 1000).collective(Func::all_reduce, 1000);
  job.workload.group_names.push_back("other");
  job.workload.groups.push_back({1, job.workload.groups[0].members});
  Op other = job.program().streams[0][0];
  other.group = 1;
  job.program().streams[0].push_back(other);
  const Result result = job.run();
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  EXPECT_EQ(plan.wire_messages, result.messages_per_iteration);
  EXPECT_EQ(plan.wire_bytes, result.wire_bytes_per_iteration);
  ASSERT_EQ(plan.pairs.size(), result.pairs.size());
  for (std::size_t i = 0; i < plan.pairs.size(); ++i)
    EXPECT_EQ(plan.pairs[i].messages, result.pairs[i].messages);
}

std::unique_ptr<Schedule> ring(int size) {
  Communicator comm;
  comm.node_of.assign(size, 0);
  return find_algorithm("generic", Func::all_reduce, "ring")
      ->make({Func::all_reduce, size, 64}, comm);
}

TEST(StepTable, HasTheStepsOfASmallScheduleAsItSaysThem) {
  const auto schedule = ring(16);
  StepTable table;
  std::size_t left = StepTable::kMostSteps;
  for (GroupRank r = 0; r < 16; ++r) {
    const Step* steps = table.of(*schedule, r, left);
    ASSERT_NE(steps, nullptr);
    EXPECT_EQ(left, StepTable::kMostSteps - 16u * 31u);
    for (int a = 0; a < schedule->actors(r); ++a) {
      for (int k = 0; k < schedule->actor(r, a).steps; ++k, ++steps) {
        const Step step = schedule->step(r, a, k);
        EXPECT_EQ(steps->send, step.send);
        EXPECT_EQ(steps->recv, step.recv);
        EXPECT_EQ(steps->send_to.empty(), step.send_to.empty());
        EXPECT_EQ(steps->on_recv, step.on_recv);
      }
    }
  }
}

TEST(StepTable, KeepsNothingOfALongScheduleNorBeyondItsBound) {
  std::size_t left = StepTable::kMostSteps;
  EXPECT_EQ(StepTable().of(*ring(1000), 0, left), nullptr);
  EXPECT_EQ(left, StepTable::kMostSteps);
  left = 100;
  EXPECT_EQ(StepTable().of(*ring(16), 0, left), nullptr);
  EXPECT_EQ(left, 100u);
}

TEST(LongestChain, CountsTheMessagesThatWaitForEachOther) {
  const auto chain = [](const char* library, Func func, const char* name, int size) {
    Collective c{func, size, 1000, 4, 0};
    const auto schedule = find_algorithm(library, func, name)->make(c, {{}, 1, 16});
    const int longest = longest_chain(*schedule, Loops::all);
    EXPECT_LE(chain_of_a_channel(*schedule, 1000, Loops::all).value(), longest) << name;
    EXPECT_FALSE(chain_of_a_channel(*schedule, 1, Loops::all)) << name;
    EXPECT_EQ(longest_chain(*schedule, Loops::first), longest) << name;  // none has loops
    return longest;
  };
  EXPECT_EQ(chain("generic", Func::all_reduce, "ring", 8), 14);
  EXPECT_EQ(chain("generic", Func::broadcast, "binomial", 8), 3);
  EXPECT_EQ(chain("generic", Func::broadcast, "binomial", 7), 2);
  EXPECT_EQ(chain("generic", Func::broadcast, "linear", 8), 1);
  EXPECT_EQ(chain("openmpi-4.1", Func::all_to_all, "linear", 8), 1);
}

TEST(LongestChain, OfTheFirstLoopIsThatOfASmallCall) {
  Communicator node;
  node.node_of.assign(8, 0);
  for (const char* name : {"ring", "nvls"}) {
    const auto of = [&](std::uint64_t count) {
      return find_algorithm("nccl-2.30", Func::all_reduce, name)
          ->make({Func::all_reduce, 8, count}, node);
    };
    const auto one = of(1 << 10), many = of(1 << 28);
    const int chain = longest_chain(*one, Loops::all);
    EXPECT_EQ(longest_chain(*one, Loops::first), chain) << name;
    EXPECT_EQ(longest_chain(*many, Loops::first), chain) << name;
    EXPECT_GT(longest_chain(*many, Loops::all), 2 * chain) << name;
    EXPECT_EQ(chain_of_a_channel(*many, 1 << 20, Loops::first), chain) << name;
  }
}

TEST(Port, SerialisesWhatLeavesAndWhatArrives) {
  const LinkSpeed speed = LinkSpeed::from_rate(400e9, 0);
  EXPECT_EQ(speed.serialise(1), 20);
  Port port;
  EXPECT_EQ(port.take_egress({100}, 50).at, 100);
  EXPECT_EQ(port.take_egress({100}, 50).at, 150);
  EXPECT_EQ(port.take_egress({1000}, 50).at, 1000);
  EXPECT_EQ(port.take_ingress({500}, 50).at, 500);  // idle: in when its last byte arrives
  EXPECT_EQ(port.take_ingress({510}, 50).at, 550);  // behind the other
  EXPECT_EQ(LinkSpeed::from_rate(0, 0).serialise(1 << 20), 0);
}

TEST(Port, LetsAShortMessageInWhileALongOneArrives) {
  Port port;
  EXPECT_EQ(port.take_ingress({1'000}, 10).at, 1'000);
  EXPECT_EQ(port.take_ingress({1'500}, 10).at, 1'500);
  EXPECT_EQ(port.take_ingress({2'000}, 2'000).at, 2'020);  // from 0 on, but for the two
  EXPECT_EQ(port.take_ingress({2'000}, 10).at, 2'030);
  EXPECT_EQ(port.take_ingress({3'000}, 2'000).at, 4'030);  // all since 1'000 is taken
}

// A byte a picosecond at first, half of that from 1'000 on.
struct Halves {
  static double between(Picoseconds begin, Picoseconds end) { return bytes(end) - bytes(begin); }
  static Picoseconds duration(Picoseconds start, double work) {
    const double at_first = std::max(0.0, 1'000 - static_cast<double>(start));
    return static_cast<Picoseconds>(std::min(work, at_first) + 2 * std::max(0.0, work - at_first));
  }
  static double come(double work, Picoseconds head, Picoseconds t, Picoseconds tail) {
    return work / between(head, tail) * between(head, t);
  }
  static Picoseconds next_change(Picoseconds after) {
    return after < 1'000 ? 1'000 : std::numeric_limits<Picoseconds>::max();
  }

 private:
  static double bytes(Picoseconds t) {
    const auto at = static_cast<double>(t);
    return at < 1'000 ? at : 1'000 + (at - 1'000) / 2;
  }
};

// A message of 1'200 comes from 0 to 1'400. While the ingress was idle, it took in what its rate
// was then.
TEST(Port, TakesInWhatItsRateAllows) {
  Port port;
  EXPECT_EQ(port.take_ingress({700}, 500, 200, Halves{}).at, 700);
  EXPECT_EQ(port.take_ingress({1'400}, 0, 1'200, Halves{}).at, 1'800);
  EXPECT_EQ(port.take_ingress({2'500}, 2'400, 100, Halves{}).at, 2'600);  // faster than it can
  EXPECT_EQ(port.take_ingress({4'000}, 3'000, 500, Halves{}).at, 4'000);  // idle again
}

TEST(Port, TakesAsManySlowMessagesAsItsRateAllows) {
  for (const Picoseconds before : {0, 500}) {  // idle before, or not
    Port port;
    for (int m = 0; m < 10; ++m)
      EXPECT_EQ(port.take_ingress({before + 1'000}, before, 100, AtOneRate{}).at, before + 1'000);
    EXPECT_EQ(port.take_ingress({before + 1'000}, before, 100, AtOneRate{}).at, before + 1'100);
    EXPECT_EQ(port.take_ingress({before + 1'000}, 50).at, before + 1'150);
  }
}

// Beside an ingress that looks at every picosecond what has come of messages that come evenly.
// Where such a message left room is spread over the time of its coming, so a few picoseconds may
// differ.
TEST(Port, TakesNoMoreOfASlowMessageThanHasCome) {
  std::mt19937 rng(3);
  int waited = 0;
  for (int trial = 0; trial < 4'000; ++trial) {
    Port port;
    std::vector<bool> busy(10'000, false);
    Picoseconds tail = 1'000;
    for (int m = 0; m < 5; ++m) {
      tail += static_cast<Picoseconds>(rng() % 20);
      const auto duration = 1 + static_cast<Picoseconds>(rng() % 20);
      const Picoseconds came = duration * (1 + static_cast<Picoseconds>(rng() % 8));
      Picoseconds in = tail;
      for (Picoseconds taken = 0, since = 0; taken < duration; ++since) {
        const auto t = static_cast<std::size_t>(tail - came + since);
        const Picoseconds come = std::min(duration, (since + 1) * duration / came);
        if (busy[t] || taken >= come) continue;
        busy[t] = true;
        in = std::max(in, tail - came + since + 1);
        ++taken;
      }
      const Picoseconds is =
          port.take_ingress({tail}, tail - came, static_cast<double>(duration), AtOneRate{}).at;
      EXPECT_GE(is, tail);
      EXPECT_NEAR(static_cast<double>(is), static_cast<double>(in), 10) << trial << ", " << m;
      waited += in > tail;
    }
  }
  EXPECT_GT(waited, 1'000);
}

// Beside an ingress that knows of every picosecond whether it was idle. Messages come in the order
// of their last bytes. Five of them leave as many idle times as are kept apart.
TEST(Port, TakesEachTimeOnce) {
  std::mt19937 rng(1);
  int waited = 0;
  for (int trial = 0; trial < 2'000; ++trial) {
    Port port;
    std::vector<bool> busy(10'000, false);
    Picoseconds tail = 500;
    for (int m = 0; m < 5; ++m) {
      tail += static_cast<Picoseconds>(rng() % 100);
      const auto duration = 1 + static_cast<Picoseconds>(rng() % (trial % 2 == 0 ? 30 : 300));
      Picoseconds in = tail;
      for (Picoseconds left = duration, t = tail - duration; left > 0; ++t) {
        if (busy[static_cast<std::size_t>(t)]) continue;
        busy[static_cast<std::size_t>(t)] = true;
        in = std::max(in, t + 1);
        --left;
      }
      ASSERT_EQ(port.take_ingress({tail}, duration).at, in) << "trial " << trial << ", " << m;
      waited += in > tail;
    }
  }
  EXPECT_GT(waited, 1'000);
}

// However many times an ingress was idle, it takes no more bytes than its rate allows.
TEST(Port, NeverTakesMoreThanItsRate) {
  std::mt19937 rng(2);
  for (int trial = 0; trial < 300; ++trial) {
    Port port;
    Picoseconds tail = 1'000, work = 0, in = 0;
    for (int m = 0; m < 300; ++m) {
      tail += static_cast<Picoseconds>(rng() % 20);
      const auto duration = static_cast<Picoseconds>(rng() % (m % 7 == 0 ? 300 : 10));
      work += duration;
      const Picoseconds before = in;
      in = port.take_ingress({tail}, duration).at;
      EXPECT_GE(in, std::max(tail, before));
    }
    EXPECT_GE(in, work + 650);  // the first bytes come at 700; what is spread moves a little
  }
}

// A message that waits behind a late one inherits its slip, although it was ready in time itself.
TEST(Port, GivesItsSlipToWhatWaitsForIt) {
  Port port;
  EXPECT_EQ(port.take_egress({100, 40}, 50).slip, 40);
  EXPECT_EQ(port.take_egress({120, 0}, 50).slip, 40);
  EXPECT_EQ(port.take_egress({500, 7}, 50).slip, 7);
  EXPECT_EQ(port.take_ingress({500, 30}, 50).slip, 30);
  EXPECT_EQ(port.take_ingress({510, 0}, 50).slip, 30);
  EXPECT_EQ(port.take_ingress({900, 0}, 50).slip, 0);
}

}  // namespace
}  // namespace ghostrank
