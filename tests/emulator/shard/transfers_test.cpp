// Sends and receives of a job: NCCL cuts them into messages that wait for room at the receiver;
// with every other library they are one message.
#include <string>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr std::uint64_t kMi = 1 << 20;

// Every rank sends `count` elements to the next one and receives as many from the one before, at
// the same time; `times` times, one after the other.
SmallJob shifts(const char* library, int nodes, FabricKind kind, std::uint64_t count,
                DataType type = DataType::uint8, int times = 1) {
  SmallJob job(nodes, 1, kind);
  job.spec.collectives.library = library;
  job.spec.collectives.channels = 0;
  Program& program = job.program();
  program.stream_names = {"compute", "send"};
  program.streams.resize(2);
  for (int i = 0; i < times; ++i) {
    Op op;
    op.func = Func::send_recv;
    op.dtype = type;
    op.count = count;
    op.kind = Op::Kind::send;
    op.peer = 1;
    program.streams[1].push_back(op);
    op.kind = Op::Kind::recv;
    op.peer = -1;
    program.streams[0].push_back(op);
  }
  return job;
}

struct Cut {
  std::uint64_t bytes;
  int messages;
};

// Between nodes a message has 128 KiB, 64 KiB of an operation below 1 MiB, and 32 KiB of one below
// 128 KiB (NCCL's p2p chunk and its divisors).
TEST(Transfers, NcclCutsThemIntoMessages) {
  for (const Cut& cut : {Cut{0, 1}, Cut{1000, 1}, Cut{64 << 10, 2}, Cut{128 << 10, 2}, Cut{kMi, 8},
                         Cut{6 * kMi, 48}})
    for (const char* library : {"nccl-2.28", "nccl-2.30"})
      for (const int nodes : {2, 4}) {
        const SmallJob job = shifts(library, nodes, FabricKind::virtual_time, cut.bytes);
        const Result result = job.run();
        const std::string which = std::string(library) + ", " + std::to_string(nodes) + " nodes, " +
                                  std::to_string(cut.bytes) + " bytes";
        EXPECT_EQ(result.messages_per_iteration, nodes * cut.messages) << which;
        EXPECT_EQ(result.wire_bytes_per_iteration, nodes * static_cast<double>(cut.bytes)) << which;
        const TrafficPlan plan = plan_traffic(job.spec, job.workload);
        EXPECT_EQ(plan.wire_messages, static_cast<std::uint64_t>(nodes * cut.messages)) << which;
        EXPECT_EQ(plan.collectives.front().calls, static_cast<std::uint64_t>(nodes)) << which;
      }
}

TEST(Transfers, OtherLibrariesSendOneMessage) {
  for (const char* library : {"generic", "gloo", "openmpi-4.1"})
    EXPECT_EQ(shifts(library, 4, FabricKind::virtual_time, 6 * kMi).run().messages_per_iteration, 4)
        << library;
}

// Two ranks that send each other more than fits: credits for what one sends come among the data
// that it receives from the same peer, of a transfer with the same number.
TEST(Transfers, BothWaysAtOnceEachByteArrives) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const int shards : {1, 2})
      for (const double rate : {0.0, 8e9}) {
        SmallJob job = shifts("nccl-2.28", 2, kind, 2 * kMi, DataType::int32, 3);
        job.spec.run.verify = true;
        job.spec.run.shards = shards;
        job.spec.cluster.nic.rate_bps = rate;
        const Result result = job.run();
        EXPECT_EQ(result.interrupted, "");
        ASSERT_TRUE(result.verify);
        EXPECT_EQ(result.verify->wrong_elements, 0U);
        EXPECT_EQ(result.verify->checked_elements, 2U * 3 * 2 * kMi);
      }
}

// A send ends when its last message has left, and messages leave as the receiver takes them: eight
// are under way on a channel.
TEST(Transfers, ASendWaitsForItsReceiver) {
  const auto step = [](std::uint64_t bytes) {
    SmallJob job = shifts("nccl-2.28", 2, FabricKind::virtual_time, bytes);
    Op late;
    late.duration = kPicosPerMilli;
    OpList& receives = job.program().streams[0];
    const Op receive = receives.front();
    receives = {late, receive};
    Op after;
    after.duration = kPicosPerMilli;
    job.program().streams[1].push_back(after);
    return job.run().iterations.front().seconds;
  };
  EXPECT_LT(step(64 << 10), 1.5e-3);  // fits: the sender computes while the receiver does
  EXPECT_GT(step(64 * kMi), 2e-3);
}

}  // namespace
}  // namespace ghostrank
