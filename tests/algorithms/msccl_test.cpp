// Right MSCCL files: their messages, their proofs, their results.
#include "collectives/exchange/msccl.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "profiles/algorithms/algorithms.h"
#include "tests/algorithms/support.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::all_pairs_xml, testing::fused_ring_xml, testing::messages_of, testing::parsed;

std::unique_ptr<Schedule> schedule_of(const std::string& xml, std::uint64_t count) {
  const auto algorithm = parsed(xml);
  const Collective c{algorithm->func, static_cast<int>(algorithm->ranks.size()), count, 4, 0};
  return msccl_schedule(algorithm, c, {});
}

TEST(MscclFile, WithScratchLocalWorkAndDependenciesIsProved) {
  for (const bool in_place : {true, false})
    for (int n = 2; n <= 6; ++n) {
      const auto algorithm = parsed(all_pairs_xml(n, in_place));
      EXPECT_NO_THROW(prove_msccl(algorithm, "test.xml")) << n << in_place;
    }
}

TEST(MscclFile, WithFusedStepsIsProved) {
  for (int n = 3; n <= 6; ++n) EXPECT_NO_THROW(prove_msccl(parsed(fused_ring_xml(n, 2)), "x"));
}

TEST(MscclFile, SendsItsChunksWithTheirPadding) {
  const auto schedule = schedule_of(all_pairs_xml(4, true), 10);  // chunks of 3; the last has 1
  const auto messages = messages_of(*schedule);
  EXPECT_EQ(messages.size(), 12u);
  for (const auto& [connection, bytes] : messages)
    EXPECT_EQ(bytes, (std::vector<std::uint64_t>{12, 12}));
  EXPECT_TRUE(check(*schedule).ok) << check(*schedule).error;
}

TEST(MscclFile, WorksForAnyNumberOfElements) {
  for (std::uint64_t count = 0; count < 40; ++count)
    for (const std::string& xml :
         {all_pairs_xml(5, true), all_pairs_xml(3, false), fused_ring_xml(4, 3)}) {
      const CheckReport report = check(*schedule_of(xml, count));
      EXPECT_TRUE(report.ok) << count << ": " << report.error;
    }
}

TEST(MscclFile, FramesItsMessagesAsItsProtocolDoes) {
  std::string xml = fused_ring_xml(3, 1);
  xml.replace(xml.find("Simple"), 6, "LL");
  const auto schedule = schedule_of(xml, 100);
  const auto messages = messages_of(*schedule);
  EXPECT_EQ(messages.size(), 3u);
  for (const auto& [connection, bytes] : messages)
    for (const std::uint64_t b : bytes) EXPECT_EQ(b, 800u);
}

TEST(MscclFile, RefusesCallsThatAreNotItsOwn) {
  const auto algorithm = parsed(fused_ring_xml(4, 1));
  const auto call = [&](const Collective& c, const Communicator& comm) {
    return msccl_schedule(algorithm, c, comm);
  };
  EXPECT_NO_THROW(call({Func::all_reduce, 4, 8, 4, 0}, {}));
  EXPECT_THROW(call({Func::all_reduce, 5, 8, 4, 0}, {}), std::invalid_argument);
  EXPECT_THROW(call({Func::reduce, 4, 8, 4, 0}, {}), std::invalid_argument);
  EXPECT_THROW(call({Func::all_reduce, 4, 8, 4, 1}, {}), std::invalid_argument);
  Communicator sliced;
  sliced.slice_bytes = 4;
  EXPECT_THROW(call({Func::all_reduce, 4, 8, 4, 0}, sliced), std::invalid_argument);
}

// Plays a file in the engine, with real data.
void expect_right_sums(const std::string& xml, int nodes, int gpus, std::uint64_t count) {
  const testing::TemporaryFile file("algo.xml", xml);
  Algorithms algorithms;
  algorithms.load_file(file.path(), ".");
  const auto own = std::make_shared<const Algorithms>(std::move(algorithms));
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    testing::SmallJob job(nodes, gpus, kind);
    job.spec.collectives.own = own;
    job.spec.collectives.algorithm(Func::all_reduce) = file.path();
    job.spec.run.verify = true;
    job.collective(Func::all_reduce, count).collective(Func::all_reduce, count);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->checked_elements,
              2 * count * static_cast<std::uint64_t>(nodes * gpus));
    EXPECT_EQ(result.verify->wrong_elements, 0u);
  }
}

TEST(MscclFile, ReducesRealDataRightInTheEngine) {
  expect_right_sums(all_pairs_xml(4, true), 2, 2, 1000);
  expect_right_sums(all_pairs_xml(6, false), 3, 2, 1001);
  expect_right_sums(fused_ring_xml(5, 3), 5, 1, 77);
}

}  // namespace
}  // namespace ghostrank
