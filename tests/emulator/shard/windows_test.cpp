// Several shards in virtual time: which nodes each plays, when programs let them go on without the
// others, and results that do not depend on it.
#include "emulator/shard/shared/windows.h"

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/shard/ranks/first_sends.h"
#include "emulator/shard/ranks/jitter.h"
#include "tests/emulator/fabric/fabric_double.h"
#include "tests/emulator/shard/ops.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::compute;
using testing::SmallJob;

Op op_of(Op::Kind kind, std::uint16_t group = 0, std::uint64_t count = 0) {
  Op op;
  op.kind = kind;
  op.group = group;
  op.count = count;
  return op;
}

Op transfer_to_stage(Op::Kind kind, int peer, std::uint64_t count) {
  Op op = op_of(kind, 1, count);
  op.peer = peer;
  return op;
}

constexpr std::uint16_t kDp = 0, kPp = 1;
constexpr int kReplicas = 4;

// A pipeline of `stages` on nodes of one rank; each stage is a role, its replicas are neighbours.
// Stream 1 reduces a bucket after each record of stream 0.
struct PipelineJob {
  SmallJob job;

  explicit PipelineJob(int stages) : job(stages * kReplicas, 1, FabricKind::virtual_time) {
    job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
    job.spec.run.iterations = 2;
    Workload& w = job.workload;
    w.group_names = {"dp", "pp"};
    w.groups.clear();
    w.roles.clear();
    for (int s = 0; s < stages; ++s) {
      Group dp{kDp, {}};
      for (int r = 0; r < kReplicas; ++r) {
        dp.members.push_back(WorldRank(s * kReplicas + r));
        w.role_of[WorldRank(s * kReplicas + r)] = static_cast<std::uint16_t>(s);
      }
      w.groups.push_back(dp);
      w.roles.push_back({std::to_string(s), {Program{{"compute", "dp"}, {{}, {}}, {"op"}, 1}}});
    }
    for (int r = 0; r < kReplicas; ++r) {
      Group pp{kPp, {}};
      for (int s = 0; s < stages; ++s) pp.members.push_back(WorldRank(s * kReplicas + r));
      w.groups.push_back(pp);
    }
  }
  OpList& stream(int stage, int number) {
    return job.workload.roles[static_cast<std::size_t>(stage)]
        .iterations[0]
        .streams[static_cast<std::size_t>(number)];
  }
  // Every stage receives from the one before, computes and sends on.
  void micro_batch(Picoseconds duration, std::uint64_t count) {
    const int stages = static_cast<int>(job.workload.roles.size());
    for (int s = 0; s < stages; ++s) {
      if (s > 0) stream(s, 0).push_back(transfer_to_stage(Op::Kind::recv, -1, count));
      stream(s, 0).push_back(compute(duration));
      if (s + 1 < stages) stream(s, 0).push_back(transfer_to_stage(Op::Kind::send, 1, count));
    }
  }
  void reduce(int stage, std::uint64_t count) {
    stream(stage, 0).push_back(op_of(Op::Kind::record));
    stream(stage, 1).push_back(op_of(Op::Kind::wait));
    stream(stage, 1).push_back(op_of(Op::Kind::collective, kDp, count));
  }
};

TEST(Shards, HaveEqualSharesOfEveryRole) {
  for (const int shards : {2, 4}) {
    PipelineJob p(3);
    p.job.spec.run.shards = shards;
    const Cluster cluster(p.job.spec, p.job.workload, 1);
    std::map<std::pair<int, std::uint16_t>, int> ranks;
    for (int shard = 0; shard < shards; ++shard)
      for (const WorldRank rank : cluster.ranks_of(Host(0), shard))
        ++ranks[{shard, p.job.workload.role_of[rank]}];
    EXPECT_EQ(ranks.size(), 3u * static_cast<std::size_t>(shards));
    for (const auto& [key, count] : ranks) EXPECT_EQ(count, kReplicas / shards);
    // A replica's ranks are of one shard.
    for (int r = 0; r < kReplicas; ++r)
      EXPECT_EQ(cluster.location(WorldRank(r)).shard,
                cluster.location(WorldRank(2 * kReplicas + r)).shard);
  }
  PipelineJob uneven(5);  // 20 nodes, of which each role has 4
  uneven.job.spec.run.shards = 3;
  const Cluster cluster(uneven.job.spec, uneven.job.workload, 1);
  for (int shard = 0; shard < 3; ++shard) {
    EXPECT_GE(cluster.ranks_of(Host(0), shard).size(), 6u);
    EXPECT_LE(cluster.ranks_of(Host(0), shard).size(), 7u);
  }
}

constexpr int kLinkedNodes = 16;

// Nodes of one rank, two on each leaf.
SmallJob over_links() {
  SmallJob job(kLinkedNodes, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = kLinkedNodes / 2;
  job.spec.run.shards = 2;
  return job;
}

// The rank at `rank` with a program that it has just begun.
RankState beginning(const PipelineJob& p, int rank) {
  RankState r;
  r.party = WorldRank(rank);
  r.role = &p.job.workload.roles[p.job.workload.role_of[WorldRank(rank)]];
  r.program = &r.role->iterations[0];
  r.stop_at = 1;
  r.streams.resize(2);
  return r;
}

TEST(FirstSends, AreAfterTheComputingThatACallWaitsFor) {
  PipelineJob p(2);
  p.micro_batch(300, 10);
  p.micro_batch(40, 10);
  p.reduce(0, 100);
  p.micro_batch(5, 10);
  p.reduce(0, 100);
  p.job.spec.run.shards = 2;
  const Cluster cluster(p.job.spec, p.job.workload, 1);
  ASSERT_TRUE(FirstSends::known(p.job.spec, p.job.workload, cluster));
  FirstSends sends(p.job.workload, cluster, Host(0), 0, 0);
  EXPECT_TRUE(sends.leaves(0));   // the replicas of stage 0
  EXPECT_FALSE(sends.leaves(2));  // the pipeline of replica 0
  std::vector<RankState> ranks;
  ranks.push_back(beginning(p, 0));
  sends.begin(ranks, 1);
  EXPECT_EQ(sends.first(ranks), 340);
  ranks[0].streams[0].now.at = 1000;  // it has waited before it began
  EXPECT_EQ(sends.first(ranks), 1340);
  ranks[0].streams[0].pc = 2;  // computed once, sent once
  ranks[0].streams[0].now.at = 1300;
  EXPECT_EQ(sends.first(ranks), 1340);
  ranks[0].streams[1].pc = 2;  // the first call is in flight
  EXPECT_EQ(sends.first(ranks), 1345);
  ranks[0].streams[1].pc = 4;
  EXPECT_EQ(sends.first(ranks), Windows::kNever);
  // Stream 0 has recorded, then run ahead and waited; the call waits for the clock alone.
  ranks[0].streams[0].pc = 5;
  ranks[0].streams[0].now.at = 9000;
  ranks[0].streams[1].pc = 1;
  ranks[0].streams[1].now.at = 1340;
  sends.begin(ranks, 1);
  EXPECT_EQ(sends.first(ranks), 1340);
  ranks[0].streams[0].pc = 2;
  ranks[0].streams[0].now.at = 1300;
  ranks[0].streams[1].pc = 4;
  ranks[0].stop_at = 2;  // the next iteration begins when stream 0 has ended
  sends.begin(ranks, 1);
  EXPECT_EQ(sends.first(ranks), 1345);
}

// A delay that varies is at least as long as its shortest draw.
TEST(FirstSends, AllowForTheShortestDelays) {
  PipelineJob p(2);
  p.micro_batch(1'000'000, 10);
  p.reduce(0, 100);
  p.job.spec.run.shards = 2;
  const Cluster cluster(p.job.spec, p.job.workload, 1);
  FirstSends sends(p.job.workload, cluster, Host(0), 0, 0.05);
  std::vector<RankState> ranks;
  ranks.push_back(beginning(p, 0));
  sends.begin(ranks, 1);
  EXPECT_NEAR(static_cast<double>(sends.first(ranks)), 1e6 * least_jitter_factor(0.05), 1);
}

// Three pods of two leaves with two nodes each; shard 1 plays nodes 6 to 11, and the links of their
// leaves. Those between the spines of pod 1 and the cores are shard 0's, which has most of the pod.
TEST(FirstSends, OfCallsThatMayCrossLinksOfOtherShards) {
  SmallJob job(12, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
  job.spec.cluster.topology.kind = TopologySpec::Kind::fat_tree;
  job.spec.cluster.topology.places = 12;
  job.spec.cluster.topology.pods = 3;
  job.spec.cluster.topology.leaves = 6;
  job.spec.run.shards = 2;
  job.workload.groups.clear();
  for (const auto& [a, b] : {std::pair(6, 7), {8, 10}, {6, 8}, {4, 6}, {0, 2}})
    job.workload.groups.push_back({0, {WorldRank(a), WorldRank(b)}});
  const Cluster cluster(job.spec, job.workload, 1);
  ASSERT_TRUE(FirstSends::known(job.spec, job.workload, cluster));
  const FirstSends sends(job.workload, cluster, Host(0), 1, 0);
  EXPECT_FALSE(sends.leaves(0));  // on one leaf
  EXPECT_FALSE(sends.leaves(1));  // in one pod
  EXPECT_TRUE(sends.leaves(2));   // between pods
  EXPECT_TRUE(sends.leaves(3));   // between shards
  EXPECT_TRUE(sends.leaves(4));   // of the other shard, and perhaps over links here
}

// Plays the job with two shards. Returns what they counted.
std::vector<ShardStats> played_by_two(const SmallJob& job) {
  const Cluster cluster(job.spec, job.workload, 1);
  const Flows flows(job.spec, job.workload, cluster);
  ShardShared shared(2);
  testing::FabricDouble fabric;
  shared.fabrics = {&fabric, &fabric};
  std::vector<std::unique_ptr<Shard>> shards;
  for (int i = 0; i < 2; ++i) {
    shards.push_back(std::make_unique<Shard>(
        Shard::Setup{job.spec, job.workload, cluster, Host(0), i, flows, fabric}));
    shards.back()->prepare({.count = 1}, shared);
  }
  std::thread other([&] { shards[1]->play(Clock::virtual_time()); });
  shards[0]->play(Clock::virtual_time());
  other.join();
  EXPECT_EQ(shared.failure, "");
  EXPECT_GT(shards[0]->stats().handed, 0u);
  return {shards[0]->stats(), shards[1]->stats()};
}

// Replicas send messages for milliseconds, a thousand times the lookahead, before they meet.
TEST(FirstSends, LetShardsGoOnUntilReplicasMeet) {
  for (const double jitter : {0.0, 0.02}) {
    PipelineJob p(3);
    p.job.spec.run.shards = 2;
    p.job.spec.run.jitter = jitter;
    for (int m = 0; m < 50; ++m) p.micro_batch(30 * kPicosPerMicro, 100'000);
    p.reduce(0, 1000);
    EXPECT_LT(played_by_two(p.job)[0].windows, 200u) << jitter;
  }
}

// The same over links that one shard plays: of 16 nodes on 8 leaves, half of them in each shard,
// pairs of neighbouring leaves send to each other, and then all nodes.
TEST(FirstSends, LetShardsGoOnWhileMessagesCrossTheirOwnLinks) {
  SmallJob job = over_links();
  Workload& w = job.workload;
  w.group_names.push_back("pair");
  for (int r = 0; r < kLinkedNodes; r += 4) {
    Group pair{1, {}};
    for (const int member : {r, r + 2}) pair.members.push_back(WorldRank(member));
    w.groups.push_back(pair);
  }
  w.roles.push_back({"other", w.roles[0].iterations});
  for (int r = 0; r < kLinkedNodes; ++r)
    w.role_of[WorldRank(r)] = static_cast<std::uint16_t>(r % 2);
  OpList& calls = job.program().streams[0];
  for (int n = 0; n < 50; ++n) calls.push_back(op_of(Op::Kind::collective, 1, 100'000));
  for (Role& role : w.roles) {
    role.iterations[0].streams[0].push_back(compute(10 * kPicosPerMilli));
    role.iterations[0].streams[0].push_back(op_of(Op::Kind::collective, 0, 1000));
  }
  EXPECT_LT(played_by_two(job)[0].windows, 500u);
  testing::expect_alike_with_shards(job, {2, 4});
}

TEST(FirstSends, ChangeNoResult) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    PipelineJob p(2 + static_cast<int>(random() % 3));
    const int stages = static_cast<int>(p.job.workload.roles.size());
    p.job.spec.collectives.library = random() % 2 ? "generic" : "nccl-2.28";
    for (int m = 0; m < 6; ++m) {
      p.micro_batch(static_cast<Picoseconds>(random() % 40) * kPicosPerMicro,
                    1 + random() % 100'000);
      for (int s = 0; s < stages; ++s)
        if (random() % 3 == 0) p.reduce(s, 1 + random() % 50'000);
    }
    if (random() % 2) p.stream(0, 0).push_back(op_of(Op::Kind::collective, kDp, 777));
    testing::expect_alike_with_shards(p.job, {2, 3, 4});
  }
}

// All ranks do the same at the same time, so both shards have something to do in most windows. They
// would take turns if the one that is behind played until it is ahead.
TEST(Windows, AreSharedByShardsWhoseRanksSendOverLinks) {
  SmallJob job = over_links();
  for (int n = 0; n < 4; ++n) job.collective(Func::all_reduce, 1'000'000);
  for (const ShardStats& shard : played_by_two(job)) {
    EXPECT_GT(shard.windows, 200u);
    EXPECT_GT(static_cast<double>(shard.busy_windows), 0.8 * static_cast<double>(shard.windows));
  }
}

// Shards that play so many windows each, on a thread each; what a window does is the test's.
struct Windowed {
  Windows windows;
  int count;
  std::function<Windows::Told(int shard, int window)> tell;  // before a window, and after the last
  std::function<void(int shard, int window)> play = [](int, int) {};
  std::vector<int> played;  // by shard

  Windowed(int shards, std::chrono::nanoseconds spin, int windows_each)
      : windows(shards, spin), count(windows_each), played(static_cast<std::size_t>(shards)) {}

  void come(int shard) { windows.come(shard, tell(shard, played[shard])); }
  void play_next(int shard) {
    windows.begin(shard);
    play(shard, played[shard]++);
    come(shard);
  }
  void play_all(int shard) {
    const Windows::Play play_for = [this](int other) { play_next(other); };
    for (come(shard);; play_next(shard)) {
      windows.wait(shard, play_for);
      if (played[shard] == count) return;
    }
  }
  void play_threads() {
    std::vector<std::thread> threads;
    for (int shard = 0; shard < static_cast<int>(played.size()); ++shard)
      threads.emplace_back([this, shard] { play_all(shard); });
    for (std::thread& thread : threads) thread.join();
  }
};

// One shard's mail is read after the next meeting, and only then, whichever thread plays it.
TEST(Windows, BringMailToTheNextWindow) {
  for (const int spin_us : {0, 20}) {
    Windowed w(2, std::chrono::microseconds(spin_us), 2000);
    std::array<std::uint32_t, 2> got{};
    w.tell = [](int self, int n) { return Windows::Told{.next = 10 * n + self, .sends = n}; };
    w.play = [&](int self, int n) {
      EXPECT_EQ(w.windows.told(self, 1 - self).next, 10 * n + 1 - self);
      EXPECT_EQ(w.windows.first(self, self), n == 0 ? self : std::min(10 * n + self, 10 * n - 7));
      w.windows.take_mail(self, [&](auto&& mail) {
        if constexpr (std::is_same_v<std::decay_t<decltype(mail)>, Event>) {
          EXPECT_EQ(mail.sequence, n - 1u);
          ++got[self];
        }
      });
      EXPECT_EQ(got[self], static_cast<std::uint32_t>(n));
      Parcel parcel;
      parcel.event.t.at = 10 * n + 3;
      parcel.event.sequence = static_cast<std::uint32_t>(n);
      w.windows.send(self, 1 - self, std::move(parcel));
    };
    w.play_threads();
    EXPECT_EQ(w.played, (std::vector<int>{2000, 2000}));
  }
}

TEST(Windows, GoOnWithoutAShardThatHasLeft) {
  Windowed w(3, std::chrono::nanoseconds(0), 200);
  w.tell = [](int self, int n) { return Windows::Told{.stopped = self == 2 && n == 200}; };
  w.play = [&](int self, int n) {
    if (self == 1 && n == 100) throw std::runtime_error("enough");
  };
  std::vector<std::thread> threads;
  for (int self = 0; self < 3; ++self)
    threads.emplace_back([&w, self] {
      if (self != 1) {
        w.play_all(self);
        EXPECT_TRUE(w.windows.stopped(self));
        return;
      }
      EXPECT_THROW(w.play_all(self), std::runtime_error);  // whichever thread has played it
      w.windows.leave(self);
    });
  for (std::thread& thread : threads) thread.join();
}

std::atomic<bool> held{false}, goes_on{false};

// In a signal handler: keeps the thread from running.
void hold(int) {
  held = true;
  while (!goes_on) usleep(100);
}

char state_of(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name;
  char state = '?';
  stat >> number >> name >> state;
  return state;
}

// The thread of shard 1 sleeps at its first meeting and is then kept from running, as by other
// programs.
TEST(Windows, OfAThreadThatDoesNotRunArePlayedByOthers) {
  for (const int shards : {2, 3}) {
    Windowed w(shards, std::chrono::microseconds(20), 1000);
    std::atomic<pid_t> of_1{0};
    w.tell = [&](int shard, int window) {
      if (shard == 1 && window == 0) of_1 = gettid();
      return Windows::Told{};
    };
    w.play = [&](int, int) { EXPECT_NE(gettid(), of_1.load()); };
    std::thread one([&] { w.play_all(1); });
    while (of_1 == 0 || state_of(of_1) != 'S') usleep(100);
    held = goes_on = false;
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = hold;
    sigaction(SIGUSR1, &action, &before);
    pthread_kill(one.native_handle(), SIGUSR1);
    while (!held) usleep(100);
    std::vector<std::thread> others;
    for (int shard = 0; shard < shards; shard += 2)
      others.emplace_back([&w, shard] { w.play_all(shard); });
    for (std::thread& other : others) other.join();
    EXPECT_EQ(w.played, std::vector<int>(static_cast<std::size_t>(shards), 1000));
    goes_on = true;
    one.join();
    sigaction(SIGUSR1, &before, nullptr);
  }
}

}  // namespace
}  // namespace ghostrank
