// How NCCL cuts calls into channels, chunks and slices: numbers worked out by hand from its rules.
#include "collectives/nccl/settings/split.h"

#include <numeric>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

NcclTask all_reduce_task(std::uint64_t count, int max_channels,
                         Protocol protocol = Protocol::simple) {
  return {Func::all_reduce, 8, count, 4, protocol, max_channels};
}

NcclSplit alone(const NcclTask& task, int channels, NcclVersion version = NcclVersion::v2_30) {
  return nccl_split({&task, 1}, channels, version).front();
}

std::uint64_t total(const NcclSplit& split) {
  std::uint64_t sum = 0;
  for (int i = 0; i < split.channels; ++i) {
    EXPECT_EQ(split.offset(i), sum);
    sum += split.count(i);
  }
  return sum;
}

TEST(NcclSplit, GivesEveryChannelTheSameOfALargeTask) {
  EXPECT_EQ(alone(all_reduce_task(10 << 18, 16), 16), (NcclSplit{0, 16, 163840, 163840, 163840}));
}

TEST(NcclSplit, GivesTheLastChannelWhatIsLeft) {
  // 100,000 bytes: cells of 16 KiB, two of them for a channel's 50,000 bytes of traffic (2.30).
  const NcclSplit split = alone(all_reduce_task(25000, 4), 4);
  EXPECT_EQ(split, (NcclSplit{0, 4, 8192, 8192, 424}));
}

TEST(NcclSplit, UsesNoMoreChannelsThanTheTaskMay) {
  EXPECT_EQ(alone(all_reduce_task(10 << 18, 2), 16).channels, 2);
  EXPECT_EQ(alone(all_reduce_task(10 << 18, 16), 3).channels, 3);
}

TEST(NcclSplit, GoesByHalfTheTrafficInTheOlderVersion) {
  // 64 KiB: cells of 16 KiB for 2.30, of 8 KiB for 2.28.
  EXPECT_EQ(alone(all_reduce_task(16384, 16), 16), (NcclSplit{0, 4, 4096, 4096, 4096}));
  EXPECT_EQ(alone(all_reduce_task(16384, 16), 16, NcclVersion::v2_28),
            (NcclSplit{0, 8, 2048, 2048, 2048}));
}

TEST(NcclSplit, CountsLlFourTimes) {
  EXPECT_EQ(alone(all_reduce_task(16384, 16, Protocol::ll), 16).channels, 16);
}

TEST(NcclSplit, HasNothingForATaskWithoutElements) {
  EXPECT_EQ(alone(all_reduce_task(0, 4), 4).channels, 0);
}

TEST(NcclSplit, LosesNoElement) {
  for (const Func func :
       {Func::all_reduce, Func::all_gather, Func::reduce_scatter, Func::broadcast, Func::reduce})
    for (const int ranks : {2, 8, 1000})
      for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128})
        for (const std::uint32_t element_bytes : {1U, 2U, 8U})
          for (const std::uint64_t count : {1, 777, 65537, 12345679})
            for (const int channels : {1, 2, 3, 16, 64})
              for (const NcclVersion version : {NcclVersion::v2_28, NcclVersion::v2_30}) {
                const NcclTask task{func, ranks, count, element_bytes, protocol, channels};
                const NcclSplit split = alone(task, channels, version);
                ASSERT_EQ(total(split), count);
                ASSERT_LE(split.first + split.channels, channels);
                for (int i = 0; i < split.channels; ++i) {
                  ASSERT_GT(split.count(i), 0U);
                  ASSERT_EQ(split.offset(i) * element_bytes % 16, 0U);
                }
              }
}

TEST(NcclSplit, PacksTheTasksOfAGroupBehindEachOther) {
  // 3 x 64 KiB of traffic on 4 channels: 48 KiB each, rounded up to 2 cells of 32 KiB of traffic.
  const std::vector<NcclTask> tasks(3, all_reduce_task(8192, 4));
  const auto splits = nccl_split(tasks, 4, NcclVersion::v2_30);
  ASSERT_EQ(splits.size(), 3U);
  for (const NcclSplit& split : splits) EXPECT_EQ(total(split), 8192U);
  EXPECT_EQ(splits[0], (NcclSplit{0, 1, 8192, 0, 0}));
  EXPECT_EQ(splits[1], (NcclSplit{1, 1, 8192, 0, 0}));
  EXPECT_EQ(splits[2], (NcclSplit{2, 1, 8192, 0, 0}));
}

TEST(NcclSplit, LetsNeighboursShareAChannel) {
  // 3 x 128 KiB of traffic on 2 channels: 192 KiB each, so the second task is split.
  const std::vector<NcclTask> tasks(3, all_reduce_task(16384, 2));
  const auto splits = nccl_split(tasks, 2, NcclVersion::v2_30);
  EXPECT_EQ(splits[0], (NcclSplit{0, 1, 16384, 0, 0}));
  EXPECT_EQ(splits[1], (NcclSplit{0, 2, 8192, 0, 8192}));
  EXPECT_EQ(splits[2], (NcclSplit{1, 1, 16384, 0, 0}));
}

TEST(NcclSplit, CountsAnUnfilledCellAsFull) {
  // 4097 elements are two cells of 4096: more than a channel's share, although their traffic is
  // less.
  const std::vector<NcclTask> tasks(2, all_reduce_task(4097, 2));
  const auto splits = nccl_split(tasks, 2, NcclVersion::v2_30);
  EXPECT_EQ(splits[0], (NcclSplit{0, 1, 4097, 0, 0}));
  EXPECT_EQ(splits[1], (NcclSplit{1, 1, 4097, 0, 0}));
}

TEST(NcclSplit, KeepsAllTasksOfALargeGroupOnItsChannels) {
  for (const NcclVersion version : {NcclVersion::v2_28, NcclVersion::v2_30})
    for (const int channels : {1, 2, 5, 16})
      for (int n = 1; n <= 40; ++n) {
        std::vector<NcclTask> tasks;
        for (int i = 0; i < n; ++i)
          tasks.push_back(all_reduce_task(static_cast<std::uint64_t>(1 + i * i * 997), channels));
        const auto splits = nccl_split(tasks, channels, version);
        for (int i = 0; i < n; ++i) {
          const NcclSplit& split = splits[i];
          ASSERT_EQ(total(split), tasks[i].count);
          ASSERT_LE(split.first + split.channels, channels);
        }
      }
}

TEST(NcclGroupOrder, SortsByKindAndSizeAndPutsTheLargestKindFirst) {
  const auto task = [](Func func, std::uint64_t count) {
    return NcclGroupTask{{func, 8, count, 4, Protocol::simple, 4}, 0};
  };
  const std::vector<NcclGroupTask> tasks{
      task(Func::broadcast, 1000), task(Func::all_reduce, 5000), task(Func::all_reduce, 1000),
      task(Func::broadcast, 1 << 20), task(Func::all_reduce, 1001)};
  const NcclGroupOrder order = nccl_group_order(tasks);
  EXPECT_EQ(order.order, (std::vector<std::size_t>{0, 3, 2, 4, 1}));
  // 5000 is more than four times 1000, so they go apart; so do the two broadcasts.
  EXPECT_EQ(order.run, (std::vector<int>{0, 1, 2, 2, 3}));
}

TEST(NcclGroupOrder, PrefersTheKindSubmittedLastAmongEquals) {
  const NcclGroupTask sum{{Func::all_reduce, 8, 1000, 4, Protocol::simple, 4}, 0};
  NcclGroupTask maximum = sum;
  maximum.kind = 1;
  EXPECT_EQ(nccl_group_order(std::vector{sum, maximum, sum, maximum}).order,
            (std::vector<std::size_t>{1, 3, 0, 2}));
}

TEST(NcclChunks, AreAFixedPartOfTheFifoForRings) {
  const auto chunk = [](Func func, Protocol protocol) {
    return nccl_chunk_bytes(NcclAlgorithm::ring, {func, 8, 1 << 30, 4, protocol, 1}, 1 << 24, {8});
  };
  EXPECT_EQ(chunk(Func::all_reduce, Protocol::simple), 2097152U);
  EXPECT_EQ(chunk(Func::broadcast, Protocol::simple), 524288U);
  EXPECT_EQ(chunk(Func::all_gather, Protocol::ll), 32768U);
  EXPECT_EQ(chunk(Func::reduce_scatter, Protocol::ll128), 576000U);
}

TEST(NcclChunks, ShrinkWithTheDataForTreesOfLl128AndPat) {
  const NcclTask ll128{Func::all_reduce, 8, 1 << 20, 4, Protocol::ll128, 1};
  const auto tree = [&](std::uint64_t bytes) {
    return nccl_chunk_bytes(NcclAlgorithm::tree, ll128, bytes / 4, {8});
  };
  EXPECT_EQ(tree(1 << 30), 576000U);
  EXPECT_EQ(tree(64 << 20), 144000U);  // 233 of 288,000: fewer than 4.1 x 64
  EXPECT_EQ(tree(1 << 20), 17280U);  // 18,000 in units of 1920; 29 of 36,000 are less than 4.1 x 16
  const auto pat = [](Func func, std::uint64_t block_bytes) {
    return nccl_chunk_bytes(NcclAlgorithm::pat, {func, 8, 1, 1, Protocol::simple, 1}, block_bytes,
                            {8});
  };
  EXPECT_EQ(pat(Func::all_gather, 1024), 65536U);
  EXPECT_EQ(pat(Func::all_gather, 1 << 20), 262144U);      // 32 chunks in 8 MiB
  EXPECT_EQ(pat(Func::reduce_scatter, 1 << 20), 524288U);  // 16 chunks
}

// 450,000 bytes are 6 chunks of 72,000: fewer than 2.6 x 16 / 6, but not than 2.8 x 16 / 8.
TEST(NcclChunks, OfTreesOfLl128GoByTheMeanNumberOfRanksOnANode) {
  const auto tree = [](int ranks) {
    const NcclTask task{Func::all_reduce, ranks, 1 << 20, 4, Protocol::ll128, 1};
    return nccl_chunk_bytes(NcclAlgorithm::tree, task, 450'000 / 4, {2});
  };
  EXPECT_EQ(tree(12), 34'560U);  // nodes of 8 and 4
  EXPECT_EQ(tree(16), 71'040U);
}

TEST(NcclChunks, OfNvlsTreeGiveEveryHeadSeveral) {
  const auto chunk = [](std::uint64_t bytes, int nodes) {
    return nccl_chunk_bytes(NcclAlgorithm::nvls_tree,
                            {Func::all_reduce, 8 * nodes, 1, 1, Protocol::simple, 1}, bytes,
                            {nodes, 8});
  };
  EXPECT_EQ(chunk(64 << 20, 2), 131072U);
  EXPECT_EQ(chunk(64 << 20, 4), 65536U);
  EXPECT_EQ(chunk(3 << 20, 2), 65536U);    // less than 4 chunks for each of 8 heads
  EXPECT_EQ(chunk(400 << 10, 2), 32768U);  // less than one of 64 KiB
}

TEST(NcclSlices, OfSmallChunksEndWithAnEmptyOne) {
  const NcclTask task{Func::all_reduce, 8, 1 << 20, 4, Protocol::simple, 1};
  const auto slices = [&](std::uint64_t elements) {
    return nccl_slices(NcclAlgorithm::ring, task, elements);
  };
  EXPECT_EQ(slices(100).count, 2U);
  EXPECT_EQ(slices(100).elements, 8192U);  // 32 KiB
  EXPECT_EQ(slices(10000).elements, 8192U);
  EXPECT_EQ(slices(100001).elements, 50016U);  // half, rounded up to 16
}

TEST(MessageBytes, CountTheFlagsOfEveryProtocol) {
  EXPECT_EQ(message_bytes(Protocol::simple, 1000, 4), 4000U);
  EXPECT_EQ(message_bytes(Protocol::ll, 1000, 4), 8000U);
  EXPECT_EQ(message_bytes(Protocol::ll, 1, 1), 16U);
  EXPECT_EQ(message_bytes(Protocol::ll, 9, 1), 32U);
  EXPECT_EQ(message_bytes(Protocol::ll128, 480, 4), 2048U);
  EXPECT_EQ(message_bytes(Protocol::ll128, 481, 4), 4096U);
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128})
    EXPECT_EQ(message_bytes(protocol, 0, 8), 0U);
}

}  // namespace
}  // namespace ghostrank
