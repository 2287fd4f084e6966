// SwitchML in the engine: a switch in the modelled network, real sums, and their time.
#include <algorithm>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/emulator/schemes/scale.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::kSwitchedNicRate;
using testing::SmallJob;

SmallJob switch_job(FabricKind kind, int nodes) {
  SmallJob job(nodes, 1, kind);
  job.spec.collectives.algorithm(Func::all_reduce) = "switchml";
  job.spec.cluster.nic = {kSwitchedNicRate, 4 * kPicosPerMicro};
  job.spec.run.iterations = 2;
  return job;
}

TEST(SwitchMlInTheNetwork, SumsRealDataWithinItsBoundAsPlanned) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const DataType type : {DataType::int32, DataType::float32, DataType::bfloat16}) {
      SmallJob job = switch_job(kind, 3);
      job.spec.run.verify = true;
      job.spec.fabric.packets.mtu = 1500;
      job.collective(Func::all_reduce, 3000, type).collective(Func::all_reduce, 7, type);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result.verify->checked_elements, 2u * 3u * 3007u);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
      const TrafficPlan plan = plan_traffic(job.spec, job.workload);
      EXPECT_EQ(result.messages_per_iteration, static_cast<double>(plan.wire_messages));
      // Thirteen packets, the last one partly filled; for floats as many again. Up and down, three
      // ranks.
      EXPECT_EQ(plan.wire_messages, (type == DataType::int32 ? 1u : 2u) * 13u * 6u);
    }
}

TEST(SwitchMlInTheNetwork, LossesChangeNoSum) {
  SmallJob job = switch_job(FabricKind::virtual_time, 4);
  job.spec.run.verify = true;
  job.spec.fabric.packets.loss = 0.02;
  job.spec.fabric.packets.duplicates = 0.01;
  job.spec.collectives.in_switch = {.slots = 16, .packet_elements = 64, .timeout_ps = 100'000'000};
  job.collective(Func::all_reduce, 20'000, DataType::float32);
  const Result result = job.run();
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_GT(result.packets->lost_on_purpose, 100u);
}

TEST(SwitchMlInTheNetwork, ATimeOutBelowARoundTripOfItsWindowIsNamed) {
  const auto with = [](double micros) {
    SmallJob job = switch_job(FabricKind::virtual_time, 4);
    job.spec.run.iterations = 1;
    job.spec.collectives.in_switch.timeout_ps = static_cast<Picoseconds>(micros * kPicosPerMicro);
    return job.collective(Func::all_reduce, 1 << 20, DataType::float32);
  };
  const auto planned = [](const SmallJob& job) {
    return static_cast<double>(plan_traffic(job.spec, job.workload).wire_messages);
  };
  const auto about_time_outs = [](const Result& result) {
    std::string text;
    for (const std::string& note : result.notes)
      if (note.starts_with("switch.timeout_us: ")) text += note;
    return text;
  };
  const SmallJob hasty = with(100);
  const Result again = hasty.run();
  EXPECT_GT(again.messages_per_iteration, 2 * planned(hasty));
  const std::string note = about_time_outs(again), last = "use at least ";
  ASSERT_NE(note.find(last), std::string::npos) << note;
  const double least = std::stod(note.substr(note.find(last) + last.size()));
  // 512 packets of 256 elements and a header; and the latency to the switch.
  EXPECT_NEAR(least, 512 * 1034 * 8 / kSwitchedNicRate * 1e6 + 4, 10) << note;
  const SmallJob patient = with(least);
  const Result once = patient.run();
  EXPECT_EQ(once.messages_per_iteration, planned(patient));
  EXPECT_EQ(about_time_outs(once), "");
}

TEST(SwitchMlInTheNetwork, LossesAreNotDeterministic) {
  SmallJob job = switch_job(FabricKind::virtual_time, 4);
  job.collective(Func::all_reduce, 20'000, DataType::float32);
  EXPECT_TRUE(job.run().deterministic);
  for (double PacketSpec::*fault :
       {&PacketSpec::loss, &PacketSpec::duplicates, &PacketSpec::reordering}) {
    SmallJob faulty = job;
    faulty.spec.fabric.packets.*fault = 0.02;
    EXPECT_FALSE(faulty.run().deterministic);
  }
}

// S at the rate of a NIC, headers included, for any number of ranks; a ring's time grows to twice
// that.
TEST(SwitchMlInTheNetwork, TakesTheTimeOfOneTensor) {
  constexpr std::uint64_t kElements = 4'000'000, kPackets = kElements / 256;
  const double wire = static_cast<double>(kPackets) * (1024 + 10) * 8 / kSwitchedNicRate;
  for (const int nodes : {2, 4, 16}) {
    SmallJob job = switch_job(FabricKind::virtual_time, nodes);
    job.collective(Func::all_reduce, kElements, DataType::int32);
    const double seconds = job.run().iterations[0].seconds;
    EXPECT_GT(seconds, wire) << nodes;
    EXPECT_LT(seconds, wire * 1.005 + 20e-6) << nodes;
    job.spec.collectives.algorithm(Func::all_reduce) = "ring";
    job.spec.collectives.slice_bytes = 64 << 10;
    const double ring = job.run().iterations[0].seconds;
    const double payload = static_cast<double>(kElements) * 4 * 8 / kSwitchedNicRate;
    EXPECT_NEAR(ring / payload, 2.0 * (nodes - 1) / nodes, 0.05) << nodes;
  }
}

// The slots limit the bits in flight; a round trip is the way up and the way down.
TEST(SwitchMlInTheNetwork, IsAsFastAsItsSlotsAllow) {
  SmallJob job = switch_job(FabricKind::virtual_time, 2);
  job.spec.collectives.in_switch.slots = 4;
  job.collective(Func::all_reduce, 256 * 4 * 100, DataType::int32);
  const double packet = 1034 * 8 / kSwitchedNicRate, round_trip = 4e-6 + 2 * packet;
  EXPECT_NEAR(job.run().iterations[0].seconds, 100 * round_trip, 100 * round_trip * 0.2);
  EXPECT_GT(job.run().iterations[0].seconds, 99 * 4e-6);
}

TEST(SwitchMlInTheNetwork, IsTheSameForEveryNumberOfShardsAndUnderLinks) {
  for (const bool links : {false, true}) {
    std::vector<double> seconds;
    for (const int shards : {1, 2, 4}) {
      SmallJob job = switch_job(FabricKind::virtual_time, 8);
      if (links) {
        job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
        job.spec.cluster.topology.leaves = 4;
        job.spec.cluster.topology.spines = 2;
      }
      job.spec.run.shards = shards;
      job.spec.run.jitter = 0.1;
      job.compute(100 * kPicosPerMicro).collective(Func::all_reduce, 50'000, DataType::float32);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      seconds.push_back(result.iterations[1].seconds);
    }
    EXPECT_EQ(seconds[0], seconds[1]) << links;
    EXPECT_EQ(seconds[0], seconds[2]) << links;
  }
}

// Calls of 0.3 ms: the switch fails in the middle of the first one, and once more.
SmallJob failing_job(FabricKind kind, int nodes) {
  SmallJob job = switch_job(kind, nodes);
  job.spec.run.iterations = 4;
  job.spec.run.verify = true;
  job.spec.collectives.in_switch = {.slots = 16, .packet_elements = 64, .timeout_ps = 50'000'000};
  job.spec.network_switch.fails_at = {150 * kPicosPerMicro, 800 * kPicosPerMicro};
  return job;
}

TEST(SwitchMlInTheNetwork, GoesOnWhenTheSwitchHasForgottenEverything) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const DataType type : {DataType::int32, DataType::bfloat16}) {
      SmallJob job = failing_job(kind, 4);
      job.collective(Func::all_reduce, 60'000, type);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      EXPECT_EQ(result.verify->wrong_elements, 0u);
      ASSERT_TRUE(result.troubles);
      EXPECT_EQ(result.troubles->failures, 2u);
      EXPECT_EQ(result.troubles->fallbacks, 0u);
    }
}

// Timing decides which ranks a failure finds waiting: it takes several failures to see agreements.
TEST(SwitchMlInTheNetwork, FailsAlikeForEveryNumberOfShards) {
  std::vector<std::string> said;
  for (const int shards : {1, 2, 4}) {
    SmallJob job = failing_job(FabricKind::virtual_time, 8);
    job.spec.run.shards = shards;
    job.spec.fabric.packets = {.loss = 0.01, .duplicates = 0.01, .reordering = 0.01};
    for (int i = 1; i < 20; ++i)
      job.spec.network_switch.fails_at.push_back(i * 100 * kPicosPerMicro);
    std::ranges::sort(job.spec.network_switch.fails_at);
    job.collective(Func::all_reduce, 50'000, DataType::float32);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_GT(result.troubles->restarts, 1u);
    said.push_back(std::to_string(result.iterations.back().seconds) + " " +
                   std::to_string(result.troubles->restarts) + "\n" + testing::ledger_text(result));
  }
  EXPECT_EQ(said[0], said[1]);
  EXPECT_EQ(said[0], said[2]);
}

TEST(SwitchMlInTheNetwork, SumsAroundARingWhereTheSwitchStaysAway) {
  for (const DataType type : {DataType::int32, DataType::float32}) {
    SmallJob job = failing_job(FabricKind::virtual_time, 4);
    job.spec.network_switch.away = 1'000 * kPicosPerSecond;
    job.spec.collectives.in_switch.fallback_ps = 2'000 * kPicosPerMicro;
    job.collective(Func::all_reduce, 60'000, type);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    ASSERT_TRUE(result.troubles);
    EXPECT_EQ(result.troubles->fallbacks, 1u);
    EXPECT_GT(result.troubles->unheard, 0u);
    // The first agreement after 2 ms gives the switch up; agreements come ever more rarely.
    EXPECT_GT(result.troubles->first_fallback, 2'100 * kPicosPerMicro);
    EXPECT_LT(result.troubles->first_fallback, 4'500 * kPicosPerMicro);
    EXPECT_EQ(result.troubles->ring_calls, 4u);
    const double last = result.iterations.back().seconds;
    job.spec.network_switch.fails_at.clear();
    job.spec.collectives.algorithm(Func::all_reduce) = "ring";
    EXPECT_NEAR(last, job.run().iterations.back().seconds, 0.25 * last);
  }
}

TEST(SwitchMlInTheNetwork, StandsStillWhereTheSwitchStaysAwayAndIsNeverGivenUp) {
  SmallJob job = failing_job(FabricKind::virtual_time, 4);
  job.spec.run.stall_timeout_s = 0.1;
  job.spec.network_switch.away = 1'000 * kPicosPerSecond;
  job.spec.collectives.in_switch.fallback_ps = 0;
  job.collective(Func::all_reduce, 50'000, DataType::int32);
  EXPECT_NE(job.run().interrupted.find("stalled"), std::string::npos);
}

TEST(SwitchMlInTheNetwork, IsRefusedWhereItCannotServe) {
  const auto said = [](SmallJob& job) -> std::string {
    try {
      job.run();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  SmallJob large = switch_job(FabricKind::virtual_time, 1025);
  large.collective(Func::all_reduce, 100, DataType::int32);
  EXPECT_NE(said(large).find("at most 1,024"), std::string::npos) << said(large);
  SmallJob crowded = switch_job(FabricKind::virtual_time, 4);
  crowded.spec.collectives.in_switch.memory_slots = 500;
  crowded.collective(Func::all_reduce, 100, DataType::int32);
  EXPECT_NE(said(crowded).find("has 500 slots, and the job's communicators ask for 512"),
            std::string::npos)
      << said(crowded);
  SmallJob type = switch_job(FabricKind::virtual_time, 4);
  type.collective(Func::all_reduce, 100, DataType::int64);
  EXPECT_NE(said(type).find("adds int32"), std::string::npos) << said(type);
  SmallJob failing = failing_job(FabricKind::virtual_time, 4);
  failing.spec.collectives.algorithm(Func::all_reduce) = "atp";
  failing.collective(Func::all_reduce, 100, DataType::int32);
  EXPECT_NE(said(failing).find("does not survive a switch that fails"), std::string::npos)
      << said(failing);
}

}  // namespace
}  // namespace ghostrank
