// The example of a scheme with agents, proved for more than a plugin is when it is loaded.
#include <gtest/gtest.h>

#include "collectives/agent_checker.h"
#include "profiles/algorithms.h"

namespace ghostrank {
namespace {

std::unique_ptr<Ends> packet_server(int size) {
  static const Algorithms* const kAlgorithms = [] {
    auto* algorithms = new Algorithms;
    algorithms->load_plugin(GHOSTRANK_SERVER_PLUGIN, ".");
    return algorithms;
  }();
  return kAlgorithms->find("mine", Func::all_reduce, "packet-server")->ends(size, {});
}

Collective all_reduce(int size, std::uint64_t count) {
  return {Func::all_reduce, size, count, 4, 0};
}

TEST(PacketServer, SumsRightWhateverBecomesOfPacketsForHundredsOfSeeds) {
  for (int size = 1; size <= 8; ++size) {
    const auto ends = packet_server(size);
    for (const std::uint64_t count : {0, 1, 346, 347, 2000}) {
      const AgentProof proof = prove(*ends, all_reduce(size, count), 100);
      EXPECT_TRUE(proof.report.ok)
          << size << " ranks, count " << count << ": " << proof.report.error;
    }
  }
}

TEST(PacketServer, HoldsEachOfItsFourClaims) {
  for (const int size : {2, 5}) {
    const auto calls = calls_like(all_reduce(size, 1000), DataType::float32, 4);
    for (const Claim& claim : check_claims(*packet_server(size), calls, 200)) {
      EXPECT_TRUE(claim.holds()) << claim.misfortune << ": " << claim.text();
      EXPECT_GT(claim.met, 100U) << claim.misfortune;
    }
  }
}

TEST(PacketServer, SendsPacketsThatFitAnEthernetFrame) {
  for (int t = 0; t < kDataTypes; ++t) {
    const auto calls = calls_like(all_reduce(3, 5000), static_cast<DataType>(t), 2);
    const AgentReport report = check(*packet_server(3), calls, {.datagram_bytes = 1400});
    EXPECT_TRUE(report.ok) << report.error;
    EXPECT_FALSE(check(*packet_server(3), calls, {.datagram_bytes = 1399}).ok);
  }
}

TEST(PacketServer, AnswersInOneCopyThoseThatAskMeanwhile) {
  const auto calls = calls_like(all_reduce(8, 4000), DataType::int32, 3);
  AgentCheckOptions options{.misfortunes = {.loss = 0.3}};
  std::uint64_t lost = 0, packets = 0;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    const AgentReport report = check(*packet_server(8), calls, options);
    ASSERT_TRUE(report.ok) << report.error;
    lost += report.lost;
    packets += report.packets;
  }
  // Nobody's loss makes others receive again: 2 x 8 packets a block, and about two for each lost.
  EXPECT_GT(lost, 1000U);
  EXPECT_LT(packets, 20 * 3 * 12 * 16 + 3 * lost);
}

TEST(PacketServer, GoesOnWhereNumbersOfCallsWrap) {
  const auto calls = calls_like(all_reduce(4, 1000), DataType::int64, 4, 0xffff'fffe);
  const AgentReport report =
      check(*packet_server(4), calls, {.misfortunes = {0.1, 0.1, 0.1, 0.1}, .overlap = 2});
  EXPECT_TRUE(report.ok) << report.error;
}

}  // namespace
}  // namespace ghostrank
