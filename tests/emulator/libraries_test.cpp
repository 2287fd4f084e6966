// The choices of a library as a run reports them: the algorithm of every call, and the NICs of its
// channels.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/traced.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

SmallJob nccl_job(const char* node, int nodes, FabricKind kind = FabricKind::virtual_time) {
  SmallJob job(nodes, 8, kind);
  job.spec.collectives.library = "nccl-2.28";
  job.spec.collectives.channels = 0;
  job.spec.collectives.node_template = node;
  return job;
}

std::map<std::string, double> calls_by_algorithm(const Result& result) {
  std::map<std::string, double> calls;
  for (const CollectiveReport& row : result.collectives) calls[row.algorithm] += row.calls;
  return calls;
}

TEST(Libraries, ARunHasARowForEveryAlgorithmThatTheLibraryTook) {
  SmallJob job = nccl_job("hgx-h100-400g", 2);
  job.collective(Func::all_reduce, 100).collective(Func::all_reduce, 1 << 20);
  job.collective(Func::all_reduce, 200);
  const std::map<std::string, double> expected{{"nvlstree/Simple", 1}, {"tree/LL", 2}};
  EXPECT_EQ(calls_by_algorithm(job.run()), expected);
  std::map<std::string, double> planned;
  for (const CollectiveTraffic& row : plan_traffic(job.spec, job.workload).collectives)
    planned[row.algorithm] += static_cast<double>(row.calls);
  EXPECT_EQ(planned, expected);
}

TEST(Libraries, OpenMpiSaysWhatItsFixedRulesTook) {
  SmallJob job(4, 1, FabricKind::virtual_time);
  job.spec.collectives.library = "openmpi-4.1";
  job.collective(Func::all_reduce, 16).collective(Func::all_reduce, 1 << 20);
  EXPECT_EQ(calls_by_algorithm(job.run()),
            (std::map<std::string, double>{{"rabenseifner", 1}, {"recursive_doubling", 1}}));
}

TEST(Libraries, AnAlgorithmOfOneKindOfGroupBeatsTheJobs) {
  SmallJob job(4, 1, FabricKind::virtual_time);
  job.spec.collectives.groups["all"][Func::all_reduce] = "recursive_doubling";
  job.collective(Func::all_reduce, 16);
  EXPECT_EQ(calls_by_algorithm(job.run()),
            (std::map<std::string, double>{{"recursive_doubling", 1}}));
  job.spec.collectives.groups["nobody"][Func::all_reduce] = "ring";
  EXPECT_THROW(job.run(), Error);
}

// As with NCCL_PROTO: a forced protocol is for collectives.
TEST(Libraries, SendsAndReceivesOfNcclKeepTheirProtocolWhereAnotherIsForced) {
  const auto bytes = [](Func func, const std::string& protocol) {
    SmallJob job(4, 1, FabricKind::virtual_time);
    job.spec.collectives.library = "nccl-2.28";
    job.spec.collectives.protocol = protocol;
    if (is_ragged(func)) {
      const std::vector<std::uint64_t> counts(counts_needed(func, 4), 1000);
      job.collective(func, std::make_shared<const std::vector<std::uint64_t>>(counts));
    } else {
      job.collective(func, 1000);
    }
    return plan_traffic(job.spec, job.workload).wire_bytes;
  };
  for (const char* protocol : {"Simple", "LL", "LL128"})
    for (const Func func : {Func::all_to_all, Func::all_to_all_v, Func::gather, Func::scatter})
      EXPECT_EQ(bytes(func, protocol), bytes(func, "auto")) << protocol << " " << name_of(func);
  EXPECT_EQ(bytes(Func::all_reduce, "LL"), 2 * bytes(Func::all_reduce, "Simple"));
}

using Pairs = std::map<std::pair<Nic, Nic>, double>;

Pairs pairs_of(const std::vector<PairTraffic>& traffic) {
  Pairs pairs;
  for (const PairTraffic& pair : traffic) pairs[{pair.source_nic, pair.target_nic}] += pair.bytes;
  return pairs;
}

// A communicator with two of a node's GPUs has channels of its own: each enters and leaves by the
// NIC of its first GPU, also where the last GPU sends. (Two channels that cross on the way would
// show as pairs of unequal NICs.)
TEST(Libraries, ACommunicatorWithFewGpusOfANodeLeavesByTheNicOfTheEntryGpu) {
  Pairs first;
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory}) {
    SmallJob job(3, 2, kind);
    job.spec.collectives.library = "nccl-2.28";
    job.spec.collectives.channels = 0;
    job.spec.collectives.node_template = "hgx-h100-400g";
    job.spec.collectives.algorithm(Func::all_reduce) = "ring";
    job.spec.cluster.nics_per_node = 2;
    job.collective(Func::all_reduce, 1 << 20);
    const Pairs pairs = pairs_of(job.run().pairs);
    EXPECT_EQ(pairs.size(), 6U);
    for (const auto& [pair, bytes] : pairs)
      EXPECT_EQ(pair.first.value() % 2, pair.second.value() % 2);
    if (first.empty()) first = pairs;
    EXPECT_EQ(pairs, first);
  }
}

TEST(Libraries, AutoIsANodeLikeTheClusters) {
  const auto channels = [](int gpus, int nics, double rate_bps) {
    SmallJob job(4, gpus, FabricKind::virtual_time);
    job.spec.collectives.library = "nccl-2.28";
    job.spec.collectives.channels = 0;
    job.spec.cluster.nics_per_node = nics;
    job.spec.cluster.nic.rate_bps = rate_bps;
    job.collective(Func::all_reduce, 1 << 22);
    int most = 0;
    for (const Connection& c : plan_connections(job.spec, job.workload))
      most = std::max(most, c.channel + 1);
    return most;
  };
  EXPECT_EQ(channels(8, 8, 400e9), 16);
  EXPECT_EQ(channels(1, 1, 400e9), 4);
  EXPECT_EQ(channels(1, 1, 200e9), 2);
  EXPECT_EQ(channels(4, 4, 200e9), 16);  // NVLSTree has its own number
}

TEST(Libraries, ATemplateMustHaveTheClustersGpus) {
  SmallJob job = nccl_job("one-gpu-400g", 2);
  job.collective(Func::all_reduce, 100);
  EXPECT_THROW(job.run(), Error);
}

TEST(Libraries, EveryRowSaysHowExactItIs) {
  const auto exactness = [](const char* library, int nodes = 2, int gpus = 2) {
    SmallJob job(nodes, gpus, FabricKind::virtual_time);
    job.spec.collectives.library = library;
    job.collective(Func::all_reduce, 100);
    const Result result = job.run();
    EXPECT_EQ(result.collectives.front().exactness, exactness_of(result));
    return exactness_of(result);
  };
  using Level = Exactness::Level;
  using Basis = Exactness::Basis;
  EXPECT_EQ(exactness("nccl-2.28"), (Exactness{Level::messages, Basis::derived}));
  // tests/nccl_trace recorded NCCL 2.28 with a rank on each of a few nodes.
  EXPECT_EQ(exactness("nccl-2.28", 4, 1), (Exactness{Level::messages, Basis::traced}));
  EXPECT_EQ(exactness("nccl-2.28", 2 * kMostRanksTraced, 1).basis, Basis::derived);
  EXPECT_EQ(exactness("nccl-2.30", 4, 1).basis, Basis::derived);
  const std::vector<std::int32_t> nodes{0, 1, 2, 3, 4, 5};
  EXPECT_TRUE(nccl_is_traced("nccl-2.28", nodes, "tree/LL"));
  EXPECT_FALSE(nccl_is_traced("nccl-2.28", nodes, "tree/LL128"));
  EXPECT_EQ(exactness("openmpi-4.1"), (Exactness{Level::messages, Basis::traced}));
  EXPECT_EQ(exactness("generic"), (Exactness{Level::none, Basis::none}));
  // One generic row lowers the exactness of the job.
  SmallJob mixed(2, 2, FabricKind::virtual_time);
  mixed.spec.collectives.library = "nccl-2.28";
  mixed.spec.collectives.own = std::make_shared<Algorithms>();
  mixed.spec.collectives.algorithm(Func::all_gather) = "generic/ring";
  mixed.collective(Func::all_reduce, 100).collective(Func::all_gather, 100);
  EXPECT_EQ(exactness_of(mixed.run()), Exactness{});
}

// A transfer's messages are known where its NCCL communicator is known.
TEST(Libraries, TransfersSayHowExactTheyAre) {
  const auto of = [](const char* library, Op::Within within) {
    SmallJob job(2, 1, FabricKind::virtual_time);
    job.spec.collectives.library = library;
    job.program().stream_names.resize(2, "send");
    job.program().streams.resize(2);
    Op op;
    op.func = Func::send_recv;
    op.count = 100;
    op.within = within;
    op.kind = Op::Kind::send;
    op.peer = 1;
    job.program().streams[1].push_back(op);
    op.kind = Op::Kind::recv;
    job.program().streams[0].push_back(op);
    return exactness_of(job.run());
  };
  using Level = Exactness::Level;
  using Basis = Exactness::Basis;
  EXPECT_EQ(of("nccl-2.28", Op::Within::group), (Exactness{Level::messages, Basis::traced}));
  EXPECT_EQ(of("nccl-2.28", Op::Within::pair), (Exactness{Level::messages, Basis::traced}));
  EXPECT_EQ(of("nccl-2.28", Op::Within::unknown), (Exactness{Level::bytes, Basis::derived}));
  EXPECT_EQ(of("nccl-2.30", Op::Within::group), (Exactness{Level::messages, Basis::derived}));
  EXPECT_EQ(of("gloo", Op::Within::group).level, Level::bytes);
}

// A ring leaves such a node by the NIC of the GPU at which it entered; all fabrics and the plan
// agree on the bytes.
TEST(Libraries, ARingLeavesItsNodeByTheNicOfItsChannel) {
  Pairs first;
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory}) {
    SmallJob job = nccl_job("hgx-h100-200g", 2, kind);
    job.spec.collectives.algorithm(Func::all_reduce) = "ring";
    job.spec.collectives.protocol = "Simple";
    job.spec.dilation = kind == FabricKind::memory ? 100 : 0;
    job.collective(Func::all_reduce, 1 << 22);
    const Pairs pairs = pairs_of(job.run().pairs);
    EXPECT_EQ(pairs, pairs_of(plan_traffic(job.spec, job.workload).pairs));
    if (first.empty()) first = pairs;
    EXPECT_EQ(pairs, first);
  }
  EXPECT_EQ(first.size(), 16U);  // eight rails, both ways
  for (const auto& [pair, bytes] : first)
    EXPECT_EQ(pair.first.value() % 8, pair.second.value() % 8);
}

TEST(Libraries, AChannelsNicsShareTheClustersWhenItHasFewer) {
  SmallJob job = nccl_job("hgx-h100-400g", 2);
  job.spec.cluster.nics_per_node = 2;
  job.spec.collectives.algorithm(Func::all_reduce) = "ring";
  job.collective(Func::all_reduce, 1 << 22);
  std::set<std::pair<int, int>> pairs;
  for (const PairTraffic& pair : job.run().pairs)
    pairs.emplace(pair.source_nic.value(), pair.target_nic.value());
  EXPECT_EQ(pairs, (std::set<std::pair<int, int>>{{0, 2}, {1, 3}, {2, 0}, {3, 1}}));
}

TEST(Libraries, PointToPointDataRidesTheRailOfItsReceiver) {
  SmallJob job = nccl_job("hgx-h100-400g", 2);
  job.collective(Func::all_to_all, 1000);
  const Result result = job.run();
  EXPECT_EQ(result.pairs.size(), 16U);  // eight rails, both ways
  for (const PairTraffic& pair : result.pairs)
    EXPECT_EQ(pair.source_nic.value() % 8, pair.target_nic.value() % 8);
}

}  // namespace
}  // namespace ghostrank
