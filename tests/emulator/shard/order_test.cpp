// Messages leave a connection in the order of their turns at the NIC, even when the thread is late.
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/shard/shard.h"
#include "emulator/traffic/flows.h"
#include "profiles/job/nic_rates.h"
#include "tests/emulator/fabric/fabric_double.h"
#include "tests/emulator/shard/ops.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::compute;

constexpr GroupRank kHoldsUp = 1;

// Records the messages that leave; each send of rank 1 delays the thread by 100 ms.
class Recorder final : public testing::FabricDouble {
 public:
  bool try_send(int flow, Message& m) override {
    if (m.header.source == kHoldsUp)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    else
      sent.push_back({flow, m.header.sequence >> 1, m.header.start});
    return true;
  }

  struct Sent {
    int flow;
    std::uint32_t sequence;
    Picoseconds start;
    bool operator==(const Sent&) const = default;
  };
  std::vector<Sent> sent;
};

Op send_two_ranks_on(std::uint64_t count) {
  Op op;
  op.kind = Op::Kind::send;
  op.peer = 2;
  op.count = count;
  return op;
}

// Rank 0 sends three messages of 10 ms each. The second waits for its turn at 10 ms when rank 1
// delays the thread, from 5 ms on. The third, of a stream that computes until 8 ms, is then late;
// its turn at 20 ms has passed as well.
TEST(Order, AMessageThatIsLateDoesNotOvertakeOneThatWaitsForItsTurn) {
  testing::SmallJob job(2, 2, FabricKind::ofi);
  job.spec.cluster.nic.rate_bps = 8'000'000;
  const Op send = send_two_ranks_on(2500);
  Program sender = job.program(), other = job.program();
  sender.streams = {{send, send}, {compute(8 * kPicosPerMilli), send}};
  sender.stream_names = {"compute", "other"};
  other.streams[0] = {compute(5 * kPicosPerMilli), send};
  job.workload.roles = {{"sender", {sender}}, {"other", {other}}};
  job.workload.role_of = {0, 1, 1, 1};

  Recorder fabric;
  ASSERT_EQ(testing::play_first_of_two_hosts(job, fabric), "");
  ASSERT_EQ(fabric.sent.size(), 3u);
  const int flow = fabric.sent[0].flow;
  const std::vector<Recorder::Sent> in_turn = {
      {flow, 0, 0}, {flow, 1, 10 * kPicosPerMilli}, {flow, 2, 20 * kPicosPerMilli}};
  EXPECT_EQ(fabric.sent, in_turn);
}

// The receiver's NIC takes 20 kB in 11 ms from time 0, in 6.5 ms from the latency's 5 ms on. The
// receiver knows only the start, so a message that left after 6.5 ms would be in before the first.
TEST(Order, AMessageLeavesAfterTheOneBeforeIsInWhereARateRisesMeanwhile) {
  testing::SmallJob job(2, 1, FabricKind::ofi);
  job.spec.cluster.nic = {80'000'000, 5 * kPicosPerMilli};
  const RateCurve rises({{0, kPicosPerMicro}, {10 * kPicosPerMilli, kPicosPerMicro / 10}});
  job.spec.cluster.nic_rates = std::make_shared<const NicRates>(
      std::vector{rises}, VectorBy<Nic, std::uint32_t>{NicRates::kConstant, 0});
  Op send = send_two_ranks_on(5000);
  send.peer = 1;
  Program sender = job.program(), quiet = job.program();
  sender.streams = {{send, send}};
  quiet.streams = {{compute(1)}};
  job.workload.roles = {{"sender", {sender}}, {"quiet", {quiet}}};
  job.workload.role_of = {0, 1};

  Recorder fabric;
  ASSERT_EQ(testing::play_first_of_two_hosts(job, fabric), "");
  ASSERT_EQ(fabric.sent.size(), 2u);
  EXPECT_EQ(fabric.sent[0].start, 0);
  EXPECT_EQ(fabric.sent[1].start, rises.duration(0, 20'000));
  EXPECT_EQ(rises.duration(0, 20'000), 11 * kPicosPerMilli);
}

// Has room for three messages at a time; records the numbers of the transfers that every rank
// sends.
class Narrow final : public testing::FabricDouble {
 public:
  bool try_send(int, Message& m) override {
    if (room_ == 0) return false;
    --room_;
    sent[m.header.source].push_back(m.header.sequence >> 1);
    return true;
  }
  int poll(std::vector<Message>&) override {
    room_ = 3;
    return 0;
  }

  std::map<GroupRank, std::vector<std::uint32_t>> sent;

 private:
  int room_ = 0;
};

// Ranks without a rate share a flow that is full most of the time. A retried sender may post a few
// messages ahead of others, but each rank's own messages stay in order.
TEST(Order, ARanksMessagesStayInOrderThroughAFullFabric) {
  constexpr int kRanks = 4;
  constexpr std::uint32_t kSends = 300;
  testing::SmallJob job(2, kRanks, FabricKind::ofi);
  job.spec.cluster.nic.rate_bps = 0;
  Program sender = job.program(), quiet = job.program();
  Op send = send_two_ranks_on(16);
  send.peer = kRanks;
  sender.streams = {{}};
  for (std::uint32_t n = 0; n < kSends; ++n) sender.streams[0].push_back(send);
  quiet.streams = {{compute(1)}};
  job.workload.roles = {{"sender", {sender}}, {"quiet", {quiet}}};
  job.workload.role_of = {0, 0, 0, 0, 1, 1, 1, 1};

  Narrow fabric;
  ASSERT_EQ(testing::play_first_of_two_hosts(job, fabric), "");
  std::vector<std::uint32_t> in_order(kSends);
  std::iota(in_order.begin(), in_order.end(), 0u);
  ASSERT_EQ(fabric.sent.size(), static_cast<std::size_t>(kRanks));
  for (const auto& [rank, sequences] : fabric.sent) EXPECT_EQ(sequences, in_order) << rank;
}

}  // namespace
}  // namespace ghostrank
