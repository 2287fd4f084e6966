// The hash of a run in virtual time: the same for every number of shards, ties included, and a
// different one for a run that plays anything else.
#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"
#include "tools/report/result_json.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

Op transfer(Op::Kind kind, int peer, std::uint64_t count) {
  Op op;
  op.kind = kind;
  op.peer = peer;
  op.count = count;
  return op;
}

// Ranks 1 to 11 send the same bytes to rank 0 at the same time, over links that they share. Rank 0
// has a stream for each sender. Afterwards all ranks all-reduce.
SmallJob incast_of_equals(std::uint64_t bytes) {
  constexpr int kRanks = 12;
  SmallJob job(kRanks, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {10e9, 5 * kPicosPerMicro};
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = 4;
  job.spec.cluster.topology.spines = 2;
  job.spec.cluster.topology.oversubscription = 3;
  const Program idle{{"compute"}, {{}}, {"op"}, 0};
  Program receiver = idle;
  receiver.stream_names.assign(kRanks - 1, "receive");
  receiver.streams.assign(kRanks - 1, {});
  job.workload.roles = {{"receiver", {}}};
  job.workload.role_of[WorldRank(0)] = 0;
  for (int r = 1; r < kRanks; ++r) {
    receiver.streams[r - 1].push_back(transfer(Op::Kind::recv, r, bytes / 4));
    Program sender = idle;
    sender.streams[0].push_back(transfer(Op::Kind::send, -r, bytes / 4));
    job.workload.roles.push_back({"sender", {sender}});
    job.workload.role_of[WorldRank(r)] = static_cast<std::uint16_t>(r);
  }
  Op all;
  all.kind = Op::Kind::collective;
  all.func = Func::all_reduce;
  all.count = 10'000;
  receiver.streams[0].push_back(all);
  job.workload.roles[0].iterations = {receiver};
  for (int r = 1; r < kRanks; ++r) job.workload.roles[r].iterations[0].streams[0].push_back(all);
  job.spec.run.iterations = 2;
  return job;
}

TEST(ResultHash, OfAnIncastOfEqualsIsTheSameForEveryNumberOfShards) {
  std::set<std::string> of_sizes;
  for (const std::uint64_t bytes : {4'000u, 400'000u, 400'004u}) {
    SmallJob job = incast_of_equals(bytes);
    const std::string one = result_hash(job.run());
    EXPECT_EQ(one.size(), 16u);
    for (const int shards : {1, 2, 3}) {
      job.spec.run.shards = shards;
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result_hash(result), one) << bytes << " bytes, " << shards << " shards";
    }
    of_sizes.insert(one);
  }
  EXPECT_EQ(of_sizes.size(), 3u);
}

// More calls than a row of the report keeps, with durations that jitter draws: the calls kept and
// the sums of all calls do not depend on which shard played them.
TEST(ResultHash, OfThousandsOfCallsIsTheSameForEveryNumberOfShards) {
  SmallJob job(6, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 2 * kPicosPerMicro};
  job.spec.run.jitter = 0.2;
  job.spec.run.iterations = 1;
  for (int pair = 1; pair < 3; ++pair) {
    job.workload.group_names.push_back("pair" + std::to_string(pair));
    const auto kind = static_cast<std::uint16_t>(pair);
    for (int r = 0; r < 6; r += 2) {
      const int other = pair == 1 ? r + 1 : (r + 5) % 6;
      job.workload.groups.push_back({kind, {WorldRank(r), WorldRank(other)}});
    }
  }
  for (int i = 0; i < 2'000; ++i) {
    job.compute(kPicosPerMicro);
    Op op;
    op.kind = Op::Kind::collective;
    op.count = 100;
    op.group = static_cast<std::uint16_t>(1 + i % 2);
    job.program().streams[0].push_back(op);
  }
  const std::string one = result_hash(job.run());
  for (const int shards : {2, 3}) {
    job.spec.run.shards = shards;
    EXPECT_EQ(result_hash(job.run()), one) << shards;
  }
  Result elsewhere = job.run();
  elsewhere.pairs_file = "pairs.csv";
  EXPECT_EQ(result_hash(elsewhere), one);
  elsewhere.pairs.front().bytes += 1;
  EXPECT_NE(result_hash(elsewhere), one);
  job.spec.run.seed += 1;
  EXPECT_NE(result_hash(job.run()), one);
}

// Which shard's events still happen before all have stopped is not the job's.
TEST(ResultHash, IsNotOfARunThatEndedEarly) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.workload.roles.push_back(job.workload.roles[0]);
  job.workload.role_of[WorldRank(1)] = 1;
  job.program().streams[0].push_back(transfer(Op::Kind::recv, 1, 1000));  // that nobody sends
  const Result result = job.run();
  EXPECT_NE(result.interrupted, "");
  EXPECT_EQ(result_hash(result), "");
}

TEST(ResultHash, IsOfVirtualTimeAlone) {
  SmallJob job(2, 1, FabricKind::memory);
  job.collective(Func::all_reduce, 1000);
  EXPECT_EQ(result_hash(job.run()), "");
}

}  // namespace
}  // namespace ghostrank
