// SwitchML's state machine: a trace worked out by hand, and random rounds compared with plain sums.
#include "switch/compiled/pool.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

Verdict give(Pool& pool, int worker, int slot, int set, std::int32_t first, std::int8_t e = 0) {
  const Bytes frame = chunk(worker, slot, set, first, pool.elements(), 0, e);
  Packet packet;
  EXPECT_EQ(parse(frame, packet), Kind::switchml);
  return pool.receive(worker, slot, packet);
}

TEST(Pool, FollowsTheTraceOfTwoWorkersOnOneSlot) {
  struct Row {
    int worker, set;
    std::int32_t data;
    Verdict verdict;
    std::int32_t result;  // if there is one
  };
  const Row trace[] = {
      {0, 0, 5, Verdict::collect, 0},       {0, 0, 5, Verdict::duplicate, 0},
      {1, 0, 7, Verdict::broadcast, 12},    {0, 0, 5, Verdict::retransmit, 12},
      {1, 0, 7, Verdict::retransmit, 12},   {0, 1, 11, Verdict::collect, 0},
      {1, 0, 7, Verdict::retransmit, 12},   {1, 1, 13, Verdict::broadcast, 24},
      {0, 0, 100, Verdict::collect, 0},     {1, 1, 13, Verdict::retransmit, 24},
      {1, 0, 200, Verdict::broadcast, 300}, {0, 1, 1, Verdict::collect, 0},
      {1, 1, 2, Verdict::broadcast, 3},
  };
  Pool pool(2, 1, 32);
  int line = 0;
  for (const Row& row : trace) {
    SCOPED_TRACE(++line);
    ASSERT_EQ(give(pool, row.worker, 0, row.set, row.data), row.verdict);
    if (row.result == 0) continue;
    // Element i of both chunks is the chunk's first element plus i.
    for (int i = 0; i < 32; ++i) EXPECT_EQ(pool.values(0, row.set)[i], row.result + 2 * i);
  }
}

Verdict give_numbered(Pool& pool, int worker, int set, std::uint32_t id, std::int32_t first) {
  const Bytes frame = chunk(worker, 0, set, first, pool.elements(), id);
  Packet packet;
  EXPECT_EQ(parse(frame, packet), Kind::switchml);
  return pool.receive(worker, 0, packet);
}

// Three workers that begin again under later numbers, at a pool that is theirs or has been made
// anew.
TEST(Pool, OfGuardedChunksBeginsARoundAnewWithALaterNumber) {
  Pool pool(3, 1, 32, true);
  give_numbered(pool, 0, 0, 7, 1'000);
  give_numbered(pool, 1, 0, 7, 2'000);
  EXPECT_EQ(give_numbered(pool, 0, 0, 8, 1), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 2, 0, 7, 4'000), Verdict::duplicate);  // late
  EXPECT_EQ(give_numbered(pool, 1, 0, 8, 2), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 2, 0, 8, 4), Verdict::broadcast);
  EXPECT_EQ(pool.values(0, 0)[0], 7);
  // Also where the other set was full, and where the round itself was.
  EXPECT_EQ(give_numbered(pool, 1, 0, 9, 20), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 0, 0, 9, 10), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 2, 0, 9, 40), Verdict::broadcast);
  EXPECT_EQ(pool.values(0, 0)[0], 70);
}

// A new pool knows nothing of the round that worker 0 has completed: a copy of its chunk and the
// next one come, then worker 1 asks for the sum again. The copy is as good as the chunk.
TEST(Pool, OfGuardedChunksSumsCopiesOfAWorkerThatHasGoneOn) {
  Pool pool(2, 1, 32, true);
  EXPECT_EQ(give_numbered(pool, 0, 0, 20, 5), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 0, 1, 25, 6), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 1, 0, 20, 7), Verdict::broadcast);
  EXPECT_EQ(pool.values(0, 0)[0], 12);
  EXPECT_EQ(give_numbered(pool, 1, 1, 25, 3), Verdict::broadcast);
  EXPECT_EQ(pool.values(0, 1)[0], 9);
}

TEST(Pool, OfGuardedChunksCountsNoneTwiceInACompleteRound) {
  Pool pool(2, 1, 32, true);
  give_numbered(pool, 0, 0, 20, 5);
  give_numbered(pool, 1, 0, 20, 7);
  give_numbered(pool, 0, 1, 25, 6);
  EXPECT_EQ(give_numbered(pool, 0, 0, 20, 5), Verdict::retransmit);
  EXPECT_EQ(pool.values(0, 0)[0], 12);
  EXPECT_EQ(give_numbered(pool, 0, 0, 30, 1), Verdict::collect);
  EXPECT_EQ(give_numbered(pool, 1, 0, 20, 7), Verdict::duplicate);
  EXPECT_EQ(give_numbered(pool, 1, 0, 30, 2), Verdict::broadcast);
  EXPECT_EQ(pool.values(0, 0)[0], 3);
}

// Two workers, one slot; a copy of worker 0's packet 0 comes when it has sent packet 1.
TEST(Pool, TakesAnOldChunkForNewUnlessItIsGuarded) {
  for (const std::uint32_t base : {0u, 0xffffffffu}) {  // numbers wrap
    for (const bool guarded : {false, true}) {
      SCOPED_TRACE(guarded ? "guarded" : "not guarded");
      Pool pool(2, 1, 32, guarded);
      give_numbered(pool, 0, 0, base, 5);
      EXPECT_EQ(give_numbered(pool, 1, 0, base, 7), Verdict::broadcast);
      give_numbered(pool, 0, 1, base + 1, 11);
      EXPECT_EQ(give_numbered(pool, 0, 0, base, 5),
                guarded ? Verdict::retransmit : Verdict::collect);
      EXPECT_EQ(give_numbered(pool, 1, 0, base, 7),  // its result is lost
                guarded ? Verdict::retransmit : Verdict::duplicate);
      EXPECT_EQ(pool.values(0, 0)[0], guarded ? 12 : 17);
    }
  }
}

TEST(Pool, IgnoresChunksOfRoundsLongAgoIfItIsGuarded) {
  Pool pool(2, 1, 32, true);
  for (std::uint32_t id = 0; id < 6; ++id)
    for (const int worker : {0, 1})
      give_numbered(pool, worker, static_cast<int>(id % 2), id, static_cast<std::int32_t>(id));
  for (std::uint32_t id = 0; id < 4; ++id)
    EXPECT_EQ(give_numbered(pool, 0, static_cast<int>(id % 2), id, 99), Verdict::duplicate) << id;
  for (const std::uint32_t id : {4u, 5u})
    EXPECT_EQ(give_numbered(pool, 0, static_cast<int>(id % 2), id, 99), Verdict::retransmit) << id;
  EXPECT_EQ(pool.values(0, 1)[0], 10);
  pool.reset();
  EXPECT_EQ(give_numbered(pool, 0, 0, 0, 1), Verdict::collect);
}

// Holds in release builds, too.
TEST(PoolDeathTest, AbortsWhenItIsMadeForWhatItCannotSum) {
  EXPECT_DEATH(Pool(0, 1, 32), "assertion failed: workers");
  EXPECT_DEATH(Pool(kMaxWorkers + 1, 1, 32), "assertion failed: workers");
  EXPECT_DEATH(Pool(1, 0, 32), "assertion failed: slots");
  EXPECT_DEATH(Pool(1, kMaxSlots + 1, 32), "assertion failed: slots");
  EXPECT_DEATH(Pool(1, 1, 33), "assertion failed: valid_elements");
  EXPECT_DEATH(Pool(1, 1, -1), "assertion failed: valid_elements");
}

TEST(Pool, AnswersASingleWorkerAtOnce) {
  Pool pool(1, 1, 32);
  EXPECT_EQ(give(pool, 0, 0, 0, 5), Verdict::broadcast);
  EXPECT_EQ(give(pool, 0, 0, 0, 5), Verdict::retransmit);
  EXPECT_EQ(give(pool, 0, 0, 1, 6), Verdict::broadcast);
  EXPECT_EQ(pool.values(0, 1)[0], 6);
}

TEST(Pool, WrapsAsRegistersDo) {
  Pool pool(2, 1, 32);
  give(pool, 0, 0, 0, 0x7fffffff - 31);
  give(pool, 1, 0, 0, 1);
  EXPECT_EQ(pool.values(0, 0)[0], 0x7fffffff - 30);
  EXPECT_EQ(pool.values(0, 0)[31], static_cast<std::int32_t>(0x80000000u + 31));
}

TEST(Pool, KeepsTheLargerExponent) {
  Pool pool(3, 1, 32);
  give(pool, 0, 0, 0, 0, -20);
  give(pool, 1, 0, 0, 0, 3);
  give(pool, 2, 0, 0, 0, -128);
  EXPECT_EQ(pool.e0(0, 0), 3);
  EXPECT_EQ(pool.e1(0, 0), 3);
  give(pool, 0, 0, 1, 0, -90);
  give(pool, 1, 0, 1, 0, -91);
  give(pool, 2, 0, 1, 0, -92);
  EXPECT_EQ(pool.e0(0, 1), -90);
}

// Workers act in any order that the protocol allows: none starts round r + 1 before its answer to
// round r. Chunks are repeated at random.
TEST(Pool, SumsRandomRoundsWithRetransmissionsForEveryNumberOfWorkers) {
  std::mt19937 random(7);
  for (int workers = 1; workers <= kMaxWorkers; ++workers) {
    Pool pool(workers, 3, 64);
    for (int round = 0; round < 6; ++round) {
      for (int slot = 0; slot < 3; ++slot) {
        const int set = round % 2;
        std::vector<int> order(workers);
        for (int w = 0; w < workers; ++w) order[w] = w;
        std::shuffle(order.begin(), order.end(), random);
        std::uint32_t sum = 0;
        std::vector<std::int32_t> first(workers);
        for (auto& f : first)
          sum += static_cast<std::uint32_t>(f = static_cast<std::int32_t>(random()));
        for (int i = 0; i < workers; ++i) {
          const int w = order[i];
          const auto mine = first[w];
          const bool last = i == workers - 1;
          ASSERT_EQ(give(pool, w, slot, set, mine), last ? Verdict::broadcast : Verdict::collect);
          if (random() % 3 == 0) {
            ASSERT_EQ(give(pool, w, slot, set, mine),
                      last ? Verdict::retransmit : Verdict::duplicate);
          }
        }
        for (int k = 0; k < 64; ++k) {
          ASSERT_EQ(static_cast<std::uint32_t>(pool.values(slot, set)[k]),
                    sum + static_cast<std::uint32_t>(workers * k));
        }
      }
    }
  }
}

}  // namespace
}  // namespace ghostrank::switchml
