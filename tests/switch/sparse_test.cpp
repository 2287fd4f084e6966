// OmniReduce's packets and the compiled switch's sums of them.
#include "switch/wire/sparse.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "tests/switch/sparse_support.h"

namespace ghostrank::switchml {
namespace {

JobPlan sparse_job(int workers, int elements) {
  JobPlan job = job_of(workers, elements);
  job.format = Format::omnireduce;
  return job;
}

TEST(SparsePacket, HasTheDocumentedBytes) {
  const Bytes frame = block_of(1, 0x1234, 1, 0x01020304, 0x0a0b0c0d, 7, 32);
  ASSERT_EQ(frame.size(), 53u + 4 * 32);
  const unsigned expected[] = {1, 2, 3, 4, 0x92, 0x34, 0x0a, 0x0b, 0x0c, 0x0d, 1, 0, 0, 0, 7};
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(frame[42 + i]), expected[i]) << "byte " << i;
  EXPECT_EQ(load16(frame.data() + 36), 0xbe80);
  EXPECT_EQ(ipv4_checksum(frame.data() + kIpAt), 0);
}

TEST(SparsePacket, IsReadAsItWasWrittenAndOtherFormsAreRefused) {
  for (const int elements : {0, 32, 64, 256}) {
    Bytes frame = block_of(2, 77, 0, 0xfffffffe, 12345, 5, elements);
    Packet p;
    ASSERT_EQ(parse_sparse(frame, p), Kind::switchml);
    EXPECT_EQ(p.id, 0xfffffffe);
    EXPECT_EQ(p.slot, 77);
    EXPECT_EQ(p.set, 0);
    EXPECT_EQ(p.next, 12345u);
    EXPECT_EQ(p.elements, elements);
    EXPECT_EQ(p.values == nullptr, elements == 0);
    frame[kSparseHeaderBytes - 1] = std::byte{2};  // the elements' type
    EXPECT_EQ(parse_sparse(frame, p), Kind::malformed);
    frame.resize(frame.size() + 4);
    EXPECT_EQ(parse_sparse(frame, p), Kind::malformed);
    frame[37] = std::byte{0x81};  // another port
    EXPECT_EQ(parse_sparse(frame, p), Kind::other);
  }
}

// Two workers. Both have block 0, worker 1 alone has block 3, worker 0 alone block 5, the last.
TEST(SparseSwitch, SumsTheBlocksThatAreThereAndNamesTheLeastNextOne) {
  CompiledSwitch sw(plan_of({sparse_job(2, 32)}, 2));
  const auto expect = [&](const std::vector<std::pair<int, Bytes>>& out, std::size_t copies,
                          std::uint32_t next, std::int32_t first) {
    ASSERT_EQ(out.size(), copies);
    for (const auto& [port, frame] : out) {
      EXPECT_EQ(load32(frame.data() + 48), next);
      ASSERT_EQ(frame.size(), sparse_frame_bytes(32));
      EXPECT_EQ(static_cast<std::int32_t>(load32(frame.data() + kSparseHeaderBytes)), first);
    }
  };
  EXPECT_TRUE(answers(sw, 0, block_of(0, 1, 0, 0, 5, 10, 32)).empty());
  EXPECT_TRUE(answers(sw, 0, block_of(0, 1, 0, 0, 5, 10, 32)).empty());  // again
  expect(answers(sw, 1, block_of(1, 1, 0, 0, 3, 20, 32)), 2, 3, 30);
  EXPECT_TRUE(answers(sw, 0, block_of(0, 1, 1, 1, 5, 0, 0)).empty());
  expect(answers(sw, 1, block_of(1, 1, 1, 1, 8, 7, 32)), 2, 5, 7);
  expect(answers(sw, 0, block_of(0, 1, 0, 0, 5, 10, 32)), 1, 3, 30);  // lost that
  expect(answers(sw, 0, block_of(0, 1, 1, 1, 5, 0, 0)), 1, 5, 7);     // and this
  EXPECT_TRUE(answers(sw, 1, block_of(1, 1, 0, 2, 8, 0, 0)).empty());
  expect(answers(sw, 0, block_of(0, 1, 0, 2, 8, 40, 32)), 2, 8, 40);
  EXPECT_TRUE(answers(sw, 1, block_of(1, 1, 0, 0, 3, 20, 32)).empty());  // old
  // Nobody has a block: no result.
  EXPECT_TRUE(answers(sw, 0, block_of(0, 1, 1, 3, 9, 0, 0)).empty());
  EXPECT_TRUE(answers(sw, 1, block_of(1, 1, 1, 3, 9, 0, 0)).empty());
  const JobCounters& counted = *sw.counters("a");
  EXPECT_EQ(counted.received, 12u);
  EXPECT_EQ(counted.sent, 8u);
  EXPECT_EQ(counted.duplicates, 2u);
}

TEST(SparseSwitch, KeepsFormatsApart) {
  JobPlan dense = job_of(2, 32);
  JobPlan sparse = sparse_job(2, 32);
  sparse.name = "b";
  CompiledSwitch sw(plan_of({dense, sparse}, 2));
  EXPECT_TRUE(answers(sw, 0, chunk(0, 1, 0, 5, 32)).empty());
  EXPECT_TRUE(answers(sw, 0, block_of(0, 1, 0, 0, 1, 100, 32)).empty());
  const auto sums = answers(sw, 1, chunk(1, 1, 0, 6, 32));
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(element(sums[0].second, 0), 11);
  EXPECT_TRUE(answers(sw, 1, block_of(1, 1, 0, 0, 1, 100, 64)).empty());  // of other packets
  EXPECT_EQ(sw.port(1).strangers, 1u);
}

TEST(SparseSwitch, RefusesWhatItCannotDo) {
  JobPlan leaf = sparse_job(2, 32);
  leaf.uplink = Uplink{1, {}, 1};
  EXPECT_THROW(CompiledSwitch(plan_of({leaf}, 2)), std::invalid_argument);
  JobPlan all = sparse_job(2, 32);
  all.all_functions = true;
  EXPECT_THROW(CompiledSwitch(plan_of({all}, 2)), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank::switchml
