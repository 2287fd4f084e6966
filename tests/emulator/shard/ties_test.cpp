// Events on the same picosecond: a connection keeps its order, and in virtual time their order does
// not depend on the number of shards.
#include <random>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "tests/emulator/shard/ops.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::compute;
using testing::SmallJob;

Op transfer(Op::Kind kind, std::int32_t peer, std::uint64_t count) {
  Op op;
  op.kind = kind;
  op.peer = peer;
  op.count = count;
  return op;
}

// An all-reduce of every second rank of 4 nodes of 8, whose rings share few NICs. Its last chunks
// are empty and pass the NIC among full ones of other channels.
TEST(Ties, EmptyMessagesKeepTheirPlaceOnASharedNic) {
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory}) {
    for (const int nics : {1, 2, 4}) {
      SmallJob job(4, 8, kind);
      job.spec.cluster.nics_per_node = nics;
      job.spec.cluster.nic = {400e9, 2 * kPicosPerMicro};
      job.spec.collectives.library = "nccl-2.28";
      job.spec.collectives.algorithm(Func::all_reduce) = "ring";
      job.spec.collectives.protocol = "Simple";
      job.spec.fabric.inside_node = InsideNode::messages;
      job.workload.groups[0].members.clear();
      for (int r = 0; r < 32; r += 2) job.workload.groups[0].members.emplace_back(r);
      job.workload.roles.push_back({"idle", {Program{{"compute"}, {{}}, {"op"}, 0}}});
      for (int r = 1; r < 32; r += 2) job.workload.role_of[WorldRank(r)] = 1;
      job.collective(Func::all_reduce, 402'653'248);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "") << nics << " NICs";
    }
  }
}

// Ranks 1 and 7 send the same bytes to rank 6 at the same time; the first to arrive lets a stream
// of it continue with work of 80 us.
TEST(Ties, EqualSendsToOneRankFallAlikeForEveryNumberOfShards) {
  SmallJob job(8, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {10e9, 5 * kPicosPerMicro};
  const Program idle{{"compute", "other"}, {{}, {}}, {"op"}, 0};
  Program sender = idle, receiver = idle;
  sender.streams[0] = {compute(kPicosPerMilli), transfer(Op::Kind::send, 5, 100'000)};
  job.workload.roles = {{"idle", {idle}}, {"first", {sender}}};
  sender.streams[0] = {compute(kPicosPerMilli), transfer(Op::Kind::send, -1, 100'000)};
  receiver.streams = {{transfer(Op::Kind::recv, -5, 100'000), compute(80 * kPicosPerMicro)},
                      {transfer(Op::Kind::recv, 1, 100'000)}};
  job.workload.roles.push_back({"second", {sender}});
  job.workload.roles.push_back({"receiver", {receiver}});
  job.workload.role_of = {0, 1, 0, 0, 0, 0, 3, 2};
  testing::expect_alike_with_shards(job, {2, 4, 8});
}

// Leaves and spines, rails, or no topology; links as fast as the NICs, faster or slower.
void draw_topology(std::mt19937& random, ClusterSpec& cluster) {
  using Kind = TopologySpec::Kind;
  TopologySpec& spec = cluster.topology;
  const Kind kinds[] = {Kind::nonblocking, Kind::leaf_spine, Kind::leaf_spine,
                        Kind::rail_optimised};
  spec.kind = kinds[random() % 4];
  const int rails = spec.kind == Kind::rail_optimised ? cluster.nics_per_node : 1;
  spec.leaves = rails * static_cast<int>(1 + random() % 4);
  spec.spines = static_cast<int>(1 + random() % 3);
  spec.oversubscription = static_cast<double>(1 + random() % 4);
  spec.link_latency = static_cast<Picoseconds>(random() % 2) * kPicosPerMicro;
  spec.routing = &routings()[random() % routings().size()];
}

// Many ranks act at the same time: no jitter, equal sizes, several ranks per NIC.
SmallJob symmetric_job(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<std::uint64_t> choices) {
    return choices.begin()[random() % choices.size()];
  };
  const int gpus = static_cast<int>(one_of({1, 2, 4}));
  SmallJob job(8, gpus, FabricKind::virtual_time);
  job.spec.cluster.nics_per_node = gpus == 4 ? static_cast<int>(one_of({1, 2})) : 1;
  job.spec.cluster.nic.rate_bps = static_cast<double>(one_of({0, 8'000'000'000, 100'000'000'000}));
  job.spec.cluster.nic.latency = static_cast<Picoseconds>(one_of({1, 8})) * kPicosPerMicro;
  job.spec.cluster.intra_node = {8e12, 0};
  if (random() % 2) job.spec.fabric.inside_node = InsideNode::messages;
  job.spec.collectives.library = random() % 3 ? "generic" : "gloo";
  job.spec.collectives.credits =
      job.spec.collectives.library == "generic" ? static_cast<std::uint32_t>(one_of({0, 2})) : 0;
  draw_topology(random, job.spec.cluster);
  Program& program = job.program();
  program.stream_names.push_back("other");
  program.streams.push_back({});
  Group others = job.workload.groups[0];  // a second communicator, in another order
  others.kind = 1;
  std::shuffle(others.members.begin(), others.members.end(), random);
  job.workload.group_names.push_back("others");
  job.workload.groups.push_back(others);
  for (std::size_t stream = 0; stream < 2; ++stream) {
    for (int ops = 0; ops < 3; ++ops) {
      Op op;
      op.kind = Op::Kind::collective;
      op.group = static_cast<std::uint16_t>(stream);
      op.count = one_of({0, 1000, 2000});
      const bool gloo = job.spec.collectives.library == "gloo";
      const Func funcs[] = {Func::all_reduce, Func::all_gather, Func::broadcast, Func::all_to_all,
                            Func::gather};
      op.func = funcs[random() % (gloo ? 3 : 5)];
      program.streams[stream].push_back(op);
      program.streams[stream].push_back(
          compute(static_cast<Picoseconds>(one_of({0, 1, 8})) * kPicosPerMicro));
    }
  }
  return job;
}

TEST(Ties, SymmetricJobsFallAlikeForEveryNumberOfShards) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    testing::expect_alike_with_shards(symmetric_job(seed), {2, 3, 4, 8});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ghostrank
