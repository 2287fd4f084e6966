// Jobs whose schemes send packets, as several processes over UDP on loopback: real sums, the plan's
// ledger, losses on purpose, and the packet counts of the result.
#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "tests/emulator/plugins.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

// All-reduces at a server on the last node.
SmallJob packets_job(const std::string& scheme) {
  SmallJob job(2, 2, FabricKind::ofi);
  job.spec.collectives.own = testing::load_plugins({GHOSTRANK_AGENTS_PLUGIN});
  job.spec.collectives.algorithm(Func::all_reduce) = "test/" + scheme;
  job.spec.cluster.servers.count = 1;
  job.spec.fabric.packets.mtu = 1500;
  job.spec.run.verify = true;
  job.spec.run.warmup = 1;
  job.spec.run.iterations = 3;
  job.collective(Func::all_reduce, 5003).compute(kPicosPerMicro).collective(Func::all_reduce, 9);
  return job;
}

std::string plan_text(const SmallJob& job) {
  Result planned;
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  planned.pairs = plan.pairs;
  planned.intra_node_bytes_per_iteration = static_cast<double>(plan.intra_bytes);
  planned.intra_node_messages_per_iteration = static_cast<double>(plan.intra_messages);
  return testing::ledger_text(planned);
}

// Plays the job; process 0 passes its result to `look`.
void play(const SmallJob& job, int processes, const std::function<void(const Result&)>& look) {
  const auto outcomes = testing::run_processes(processes, [&](const World& world) {
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) look(result);
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes) EXPECT_EQ(o.said, "");
}

TEST(PacketsOfProcesses, SumRealDataAndAreThoseOfThePlan) {
  for (const int processes : {2, 3}) {
    for (const FlowKind flows : {FlowKind::process, FlowKind::nic, FlowKind::connection}) {
      SCOPED_TRACE(processes);
      SmallJob job = packets_job("with-words");
      job.spec.fabric.flows = flows;
      play(job, processes, [&](const Result& result) {
        EXPECT_EQ(result.verify->checked_elements, 3u * 4u * 5012u);
        EXPECT_EQ(result.verify->wrong_elements, 0u);
        EXPECT_EQ(testing::ledger_text(result), plan_text(job));
        ASSERT_TRUE(result.packets.has_value());
        const auto planned = 3 * plan_traffic(job.spec, job.workload).wire_messages;
        EXPECT_EQ(result.packets->sent, planned);
        EXPECT_EQ(result.packets->received, planned);
        EXPECT_EQ(result.packets->lost_on_purpose, 0u);
        EXPECT_EQ(result.packets->dropped, 0u);
        EXPECT_EQ(result.packets->refused, 0u);
        EXPECT_EQ(result.packets->strays, 0u);
      });
    }
  }
}

// At the rate of its NIC, a rank takes 1.639 ms for the 20 packets of its larger call. Each node
// has its own thread.
TEST(PacketsOfProcesses, TakeTheirTurnAtTheNic) {
  SmallJob job = packets_job("with-words");
  job.spec.cluster.nic = {100e6, 5 * kPicosPerMicro};
  job.spec.run.shards = 2;
  play(job, 2, [&](const Result& result) {
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_EQ(testing::ledger_text(result), plan_text(job));
    for (const IterationReport& i : result.iterations) EXPECT_GT(i.seconds, 1.639e-3);
  });
}

TEST(PacketsOfProcesses, ThatAreLostDoubledOrLateOnPurposeAreSurvived) {
  SmallJob job = packets_job("in-packets");
  job.spec.fabric.packets = {0.1, 0.05, 0.2, 1500};
  job.spec.run.iterations = 20;
  play(job, 3, [&](const Result& result) {
    EXPECT_EQ(result.verify->checked_elements, 20u * 4u * 5012u);
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_GT(result.messages_per_iteration, plan_traffic(job.spec, job.workload).wire_messages);
    const PacketCounts& p = *result.packets;
    EXPECT_GT(p.lost_on_purpose, p.sent / 20);
    EXPECT_GT(p.doubled_on_purpose, p.sent / 50);
    EXPECT_GT(p.delayed_on_purpose, p.sent / 20);
    const std::uint64_t leaving = p.sent - p.lost_on_purpose + p.doubled_on_purpose;
    EXPECT_LE(p.received, leaving);
    EXPECT_GE(p.received, leaving - leaving / 10);  // some of the last arrive after the end
  });
}

// The second server has no helper, because there is one communicator with one.
TEST(PacketsOfProcesses, AreSentBesideAProcessThatHasNone) {
  SmallJob job = packets_job("with-words");
  job.spec.cluster.servers.count = 2;
  play(job, 4, [&](const Result& result) {
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_EQ(testing::ledger_text(result), plan_text(job));
  });
}

// Without verification the elements are not real, but the packets' words are.
TEST(PacketsOfProcesses, CarryTheirWordsWithoutVerification) {
  SmallJob job = packets_job("with-words");
  job.spec.run.verify = false;
  play(job, 2, [&](const Result& result) {
    EXPECT_EQ(result.iterations.size(), 3u);
    EXPECT_EQ(testing::ledger_text(result), plan_text(job));
  });
}

TEST(PacketsOfProcesses, AreRefusedWhereTheirHeaderDoesNotFitTheMtu) {
  SmallJob job = packets_job("with-words");
  // 256 elements, two words, and the headers: the scheme's, ghostrank's, UDP, IP.
  job.spec.fabric.packets.mtu = 1024 + 8 + 16 + 64 + 28;
  play(job, 2, [](const Result& result) { EXPECT_EQ(result.verify->wrong_elements, 0u); });
  --job.spec.fabric.packets.mtu;
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("beside its headers 1047 fit"), std::string::npos) << o.said;
}

// The example whose packets a switch could read: big-endian, without a ghostrank header.
TEST(PacketsOfProcesses, CrossInAFormatOfTheirScheme) {
  SmallJob job(2, 2, FabricKind::ofi);
  job.spec.collectives.own = testing::load_plugins({GHOSTRANK_SLOTS_PLUGIN});
  job.spec.collectives.algorithm(Func::all_reduce) = "mine/slot-max";
  job.spec.cluster.servers.count = 1;
  job.spec.fabric.packets = {.loss = 0.02, .mtu = 1500};
  job.spec.run.iterations = 3;
  job.collective(Func::all_reduce, 5003, DataType::float32, 0, 1)
      .collective(Func::all_reduce, 9, DataType::float32, 0, 2);
  for (const bool verify : {true, false}) {
    job.spec.run.verify = verify;
    play(job, 3, [&](const Result& result) {
      EXPECT_EQ(result.iterations.size(), 3u);
      EXPECT_GT(result.packets->lost_on_purpose, 0u);
      EXPECT_EQ(result.packets->strays, 0u);
      if (!verify) return;
      EXPECT_EQ(result.verify->checked_elements, 3u * 4u * 5012u);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
    });
  }
}

TEST(PacketsInOneProcess, AreCountedToo) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    SmallJob job = packets_job("in-packets");
    job.spec.fabric.kind = kind;
    job.spec.fabric.packets.loss = 0.1;
    job.spec.dilation = kind == FabricKind::memory ? 20 : 0;
    job.spec.run.iterations = 10;
    const PacketCounts p = job.run().packets.value();
    EXPECT_GT(p.lost_on_purpose, 0u);
    EXPECT_EQ(p.received, p.sent - p.lost_on_purpose);
    EXPECT_EQ(p.dropped + p.refused + p.strays + p.unreadable, 0u);
    job.spec.collectives.algorithm(Func::all_reduce) = "auto";
    EXPECT_FALSE(job.run().packets.has_value());
  }
}

}  // namespace
}  // namespace ghostrank
