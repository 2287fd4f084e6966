// Calls inside a node as one delay, beside the same calls message by message.
#include <random>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

struct Either {
  double model = 0, messages = 0;  // seconds
};

Either either(SmallJob job) {
  const auto with = [&](InsideNode how) {
    job.spec.fabric.inside_node = how;
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    return result.iterations.empty() ? 0 : result.iterations[0].seconds;
  };
  Either out;
  out.model = with(InsideNode::model);
  out.messages = with(InsideNode::messages);
  return out;
}

template <typename T>
T pick(std::mt19937& random, std::initializer_list<T> of) {
  return of.begin()[random() % of.size()];
}

// A call of a row of the registry, of any size, by some of a node's GPUs.
SmallJob random_call(std::mt19937& random, const Algorithm& row) {
  const int gpus = 2 + static_cast<int>(random() % 15);
  SmallJob job(1, gpus, FabricKind::virtual_time);
  job.spec.cluster.intra_node = {pick(random, {80e9, 3600e9, 0.}),
                                 pick<Picoseconds>(random, {0, 300'000, 3 * kPicosPerMicro})};
  job.spec.collectives.library = row.library;
  job.spec.collectives.algorithm(row.func) = row.name;
  job.spec.collectives.channels = pick(random, {1, 1, 2, 3});
  job.spec.collectives.slice_bytes = pick<std::uint64_t>(random, {0, 0, 4096, 65'536});
  job.spec.collectives.credits = pick(random, {0u, 0u, 1u, 4u});
  const std::uint64_t count = random() % pick(random, {10, 10'000, 300'000});
  if (const std::size_t needed = counts_needed(row.func, gpus)) {
    std::vector<std::uint64_t> counts(needed);
    for (std::uint64_t& one : counts) one = count == 0 ? 0 : random() % count;
    return job.collective(row.func, std::make_shared<const std::vector<std::uint64_t>>(counts));
  }
  return job.collective(row.func, count, DataType::float32,
                        static_cast<GroupRank>(random() % static_cast<unsigned>(gpus)));
}

TEST(NodeCalls, TakeAsLongAsTheirMessages) {
  std::mt19937 random(1);
  int played = 0;
  for (const Algorithm& row : registry()) {
    if ((row.library != "generic" && row.library != "openmpi-4.1") || row.func == Func::send_recv)
      continue;
    for (int i = 0; i < 6; ++i) {
      const SmallJob job = random_call(random, row);
      SCOPED_TRACE(std::string(row.library) + " " + std::string(name_of(row.func)) + " " +
                   std::string(row.name) + " " + std::to_string(i) + " of " +
                   std::to_string(job.workload.ranks));
      try {
        const Either time = either(job);
        EXPECT_EQ(time.model, time.messages);
        ++played;
      } catch (const Error&) {  // not for so many ranks
      }
    }
  }
  EXPECT_GT(played, 250);
}

// Their messages share the node.
TEST(NodeCalls, OfALaunchTakeAsLongAsItsMessages) {
  for (const char* library : {"generic", "openmpi-4.1"}) {
    SmallJob job(1, 6, FabricKind::virtual_time);
    job.spec.cluster.intra_node = {3600e9, kPicosPerMicro};
    job.spec.collectives.library = library;
    std::vector<Op> calls(3);
    for (Op& call : calls) call.kind = Op::Kind::collective;
    calls[0].func = Func::broadcast, calls[0].count = 1'000'000, calls[0].peer = 4;
    calls[1].func = Func::all_reduce, calls[1].count = 300'000;
    calls[2].func = Func::all_gather_v, calls[2].counts = 0;
    job.workload.counts.push_back(
        std::make_shared<const std::vector<std::uint64_t>>(6, std::uint64_t{70'000}));
    make_launch(calls, job.workload.launches);
    for (const Op& call : calls) job.program().streams[0].push_back(call);
    const Either time = either(job);
    EXPECT_EQ(time.model, time.messages) << library;
  }
}

// What agents play of a launch is no part of the delay.
TEST(NodeCalls, OfALaunchGoOnBesideItsServers) {
  SmallJob job(1, 8, FabricKind::virtual_time);
  job.spec.cluster.intra_node = {3600e9, kPicosPerMicro};
  job.spec.cluster.servers.count = 1;
  job.spec.collectives.algorithm(Func::all_reduce) = "parameter_server";
  std::vector<Op> calls(2);
  for (Op& call : calls) call.kind = Op::Kind::collective;
  calls[0].func = Func::broadcast, calls[0].count = 5000;
  calls[1].func = Func::all_reduce, calls[1].count = 100'000;
  make_launch(calls, job.workload.launches);
  for (const Op& call : calls) job.program().streams[0].push_back(call);
  const Either time = either(job);
  EXPECT_GT(time.model, 0);
  EXPECT_EQ(time.model, time.messages);
}

SmallJob nccl_call(Func func, const char* algorithm, std::uint64_t bytes) {
  SmallJob job(1, 8, FabricKind::virtual_time);
  job.spec.cluster.intra_node = {3600e9, kPicosPerMicro};
  job.spec.collectives.library = "nccl-2.28";
  job.spec.collectives.protocol = "Simple";
  job.spec.collectives.algorithm(func) = algorithm;
  return job.collective(func, bytes / 4, DataType::float32, 3);
}

// NCCL's rings take 2 (n-1) latencies once, whatever messages hide of them, and the bytes; 450 GB/s
// are 2.22 ps a byte.
TEST(NodeCalls, OfNcclCountTheLatenciesOfOneLoop) {
  for (const std::uint64_t mib : {16, 256}) {
    const std::uint64_t bytes = mib << 20;
    for (const char* algorithm : {"ring", "nvls"}) {
      const Either time = either(nccl_call(Func::all_reduce, algorithm, bytes));
      const double closed = 14e-6 + 1.75 * static_cast<double>(bytes) / 450e9;
      EXPECT_NEAR(time.model, closed, closed * 0.001) << algorithm << mib;
      EXPECT_LT(time.messages, time.model - 5e-6) << algorithm << mib;
    }
    // A chain of GPUs fills before the last of them has anything.
    for (const Func func : {Func::broadcast, Func::reduce}) {
      const Either time = either(nccl_call(func, "ring", bytes));
      EXPECT_NEAR(time.model, time.messages, time.messages * 0.001) << mib;
    }
  }
}

}  // namespace
}  // namespace ghostrank
