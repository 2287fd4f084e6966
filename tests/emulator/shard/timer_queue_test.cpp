// Events in the order in which they are due, whatever is pushed and popped.
#include "emulator/shard/events/timer_queue.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/common/block_store.h"
#include "emulator/common/moment.h"
#include "emulator/shard/events/nearly_sorted.h"

namespace ghostrank {
namespace {

struct Numbered {  // the members that the queue needs, and a number
  Moment t;
  std::uint32_t rank = 0, order = 0;
  int number = 0;
};

TEST(TimerQueue, FiresByTimeThenRankThenOrderOfScheduling) {
  std::mt19937 random(7);
  for (const auto ties :
       {TimerQueue<Numbered>::Ties::by_rank, TimerQueue<Numbered>::Ties::as_they_come}) {
    TimerQueue<Numbered> queue(ties);
    std::vector<std::tuple<Picoseconds, std::uint32_t, int>> all;
    for (int i = 0; i < 5000; ++i) {
      const auto at = static_cast<Picoseconds>(random() % 100);
      const auto rank = static_cast<std::uint32_t>(random() % 10);
      queue.push(at, rank).number = i;
      all.emplace_back(at, ties == TimerQueue<Numbered>::Ties::by_rank ? rank : 0, i);
    }
    std::sort(all.begin(), all.end());
    for (const auto& [at, rank, number] : all) {
      const Numbered& e = queue.pop();
      EXPECT_EQ(e.t.at, at);
      EXPECT_EQ(e.number, number);
    }
    EXPECT_TRUE(queue.empty());
  }
}

TEST(TimerQueue, KeepsItsOrderWhilePushesAndPopsAlternate) {
  std::mt19937 random(11);
  TimerQueue<Numbered> queue;
  Picoseconds now = 0;
  for (int i = 0; i < 20000; ++i) {
    if (queue.empty() || random() % 2) {
      const Picoseconds at = now + static_cast<Picoseconds>(random() % 1000);
      random() % 8 ? queue.push(at, 0) : queue.push_far(at, 0);
    } else {
      const Picoseconds at = queue.pop().t.at;
      ASSERT_GE(at, now);
      now = at;
    }
  }
}

// Events in no order, at one time or far apart, and now and then none for a while. Some are due at
// once, or behind the last bin.
TEST(TimerQueue, KeepsItsOrderWhateverTheWidthOfItsBins) {
  std::mt19937 random(23);
  using Key = std::tuple<Picoseconds, std::uint32_t, int>;  // time, rank, number
  for (const Picoseconds width : {1, 5, 64, 4'000'000}) {
    TimerQueue<Numbered> queue(TimerQueue<Numbered>::Ties::by_rank, width);
    std::set<Key> pending;
    Picoseconds now = 0;
    for (int i = 0; i < 50'000; ++i) {
      const bool grows = i / 3000 % 2 == 0;
      if (pending.empty() || random() % 8 < (grows ? 6 : 2)) {
        if (random() % 512 == 0) now += 10'000 * width;
        if (!pending.empty()) now = std::min(now, std::get<0>(*pending.begin()));
        const std::array<Picoseconds, 4> spread{1, 3 * width, 300 * width, 9000 * width};
        const Picoseconds later = random() % spread[random() % 4];
        const auto rank = static_cast<std::uint32_t>(random() % 3);
        queue.push(now + later, rank).number = i;
        pending.emplace(now + later, rank, i);
        continue;
      }
      ASSERT_EQ(queue.next(), std::get<0>(*pending.begin()));
      const Numbered& popped = queue.pop();
      ASSERT_EQ(Key(popped.t.at, popped.rank, popped.number), *pending.begin());
      pending.erase(pending.begin());
      now = popped.t.at;
      const Numbered* const second = queue.ahead(1);
      ASSERT_TRUE(second == nullptr || second->t.at >= now);
      if (i % 1000 == 0) {
        std::set<int> seen;
        EXPECT_FALSE(queue.any([&](const Numbered& e) { return !seen.insert(e.number).second; }));
        EXPECT_EQ(seen.size(), pending.size());
        queue.trim();
      }
    }
  }
}

// Thousands of events wait, as the computes of a large job do: many at one time, most in the order
// of their ranks, some beyond the last of the wide bins.
TEST(TimerQueue, KeepsTheOrderOfThousandsOfFarEvents) {
  std::mt19937 random(29);
  using Key = std::tuple<Picoseconds, std::uint32_t, int>;  // time, rank, number
  for (const Picoseconds width : {0, 250'000}) {
    TimerQueue<Numbered> queue(TimerQueue<Numbered>::Ties::by_rank, width);
    std::set<Key> pending;
    Picoseconds now = 0;
    int ahead = 0;
    for (int i = 0; i < 60'000;) {
      if (pending.size() < 4000) {
        const std::array<Picoseconds, 4> spread{1'000, 50'000'000, 30'000'000'000, 900'000'000'000};
        const Picoseconds at =
            now + static_cast<Picoseconds>(random()) * 256 % spread[random() % 4];
        const bool far = random() % 4 != 0;
        const auto together = random() % 8 == 0 ? 300u : 1u;
        for (std::uint32_t rank = 0; rank < together; ++rank, ++i) {
          (far ? queue.push_far(at, rank) : queue.push(at, rank)).number = i;
          pending.emplace(at, rank, i);
        }
      }
      for (auto n = random() % 100; n > 0 && !pending.empty(); --n) {
        const Numbered& popped = queue.pop();
        ASSERT_EQ(Key(popped.t.at, popped.rank, popped.number), *pending.begin());
        pending.erase(pending.begin());
        now = popped.t.at;
        ahead += queue.ahead(6) != nullptr;
      }
      if (random() % 512 != 0) continue;
      std::set<int> seen;
      EXPECT_FALSE(queue.any([&](const Numbered& e) { return !seen.insert(e.number).second; }));
      EXPECT_EQ(seen.size(), pending.size());
      queue.trim();
    }
    EXPECT_GT(ahead, 20'000);  // a heap does not tell what comes next
  }
}

// Sorted runs of several blocks, and both heaps.
TEST(TimerQueue, FindsWhatIsPendingAndNothingElse) {
  std::mt19937 random(17);
  TimerQueue<Numbered> queue;
  std::set<int> pending;
  Picoseconds now = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool grows = i / 500 % 2 == 0;
    if (queue.empty() || random() % 8 < (grows ? 6 : 2)) {
      const Picoseconds at = now + static_cast<Picoseconds>(random() % 1000);
      (random() % 8 ? queue.push(at, 0) : queue.push_far(at, 0)).number = i;
      pending.insert(i);
    } else {
      const Numbered& popped = queue.pop();
      now = popped.t.at;
      pending.erase(popped.number);
    }
    if (i % 50 != 0) continue;
    std::set<int> seen;
    EXPECT_FALSE(queue.any([&](const Numbered& e) { return !seen.insert(e.number).second; }));
    ASSERT_EQ(seen, pending);
    if (pending.empty()) continue;
    const int last = *pending.rbegin();
    EXPECT_TRUE(queue.any([&](const Numbered& e) { return e.number == last; }));
  }
}

// Sources push their events in order of time, but for a few earlier ones. Now and then a source's
// events before its last one are popped early, out of turn; all others keep their order.
TEST(TimerQueue, SourcesMayGiveTheirEventsOutOfTurn) {
  std::mt19937 random(19);
  TimerQueue<Numbered> queue;
  constexpr std::uint32_t kSources = 9;
  using Key = std::tuple<Picoseconds, std::uint32_t, int>;  // time, rank, number
  std::vector<std::set<Key>> lists(kSources);  // of each source, those that came in order
  std::set<Key> pending;
  std::vector<Picoseconds> last(kSources, 0);
  Picoseconds now = 0;
  int early = 0;
  for (int i = 0; i < 60'000; ++i) {
    const auto source = static_cast<std::uint32_t>(random() % kSources);
    const bool grows = i / 3000 % 2 == 0;
    if (pending.empty() || random() % 8 < (grows ? 6 : 2)) {
      const bool in_order = random() % 16 != 0 || lists[source].empty();
      const Picoseconds at =
          in_order ? std::max(now, last[source]) + static_cast<Picoseconds>(random() % 3) : now;
      const auto rank = static_cast<std::uint32_t>(random() % 3);
      const Key key{at, rank, i};
      queue.push_from(source, at, rank).number = i;
      pending.insert(key);
      if (!lists[source].empty() && key < *lists[source].rbegin()) continue;  // to the heap
      last[source] = at;
      lists[source].insert(key);
    } else if (random() % 4 != 0) {
      ASSERT_EQ(queue.next(), std::get<0>(*pending.begin()));
      const Numbered& popped = queue.pop();
      const Key key{popped.t.at, popped.rank, popped.number};
      ASSERT_EQ(key, *pending.begin());
      now = popped.t.at;
      pending.erase(key);
      for (std::set<Key>& list : lists) list.erase(key);
    } else if (!lists[source].empty()) {
      const Picoseconds end = std::get<0>(*lists[source].rbegin());
      ASSERT_EQ(queue.time_of(source), std::get<0>(*lists[source].begin()));
      while (const Numbered* event = queue.pop_early(source, end)) {
        const Key key{event->t.at, event->rank, event->number};
        ASSERT_EQ(key, *lists[source].begin());
        ASSERT_LT(event->t.at, end);
        lists[source].erase(key);
        pending.erase(key);
        ++early;
      }
      queue.settle();
      ASSERT_EQ(std::get<0>(*lists[source].begin()), end);  // one that is due then remains
    }
    ASSERT_EQ(queue.size(), pending.size());
  }
  EXPECT_GT(early, 1000);
}

// A popped event stays even if it was the last of a block or bin, or pushes allocate blocks.
void expect_popped_to_stay(Picoseconds bin, bool in_order) {
  std::mt19937 random(13);
  TimerQueue<Numbered> queue(TimerQueue<Numbered>::Ties::by_rank, bin);
  int number = 0;
  for (int pushes = 0; pushes < 300; ++pushes) {
    const auto push = [&] {
      const int at = in_order ? number / 3 : number + static_cast<int>(random() % 50);
      queue.push(at, 0).number = number;
      ++number;
    };
    push();
    const int& popped = queue.pop().number;
    const int was = popped;
    for (int i = 0; i < pushes; ++i) push();
    ASSERT_EQ(popped, was);
    while (random() % 64 && !queue.empty()) queue.pop();
    if (random() % 4 == 0) queue.trim();
  }
}

TEST(TimerQueue, WhatWasPoppedStaysAsItIsUntilTheNextPop) {
  expect_popped_to_stay(0, true);
  expect_popped_to_stay(8, false);
}

struct QueueSlot {
  EventKey key;
  bool operator<(const QueueSlot& other) const { return key.before(other.key); }
};

// Slots come in order, nearly in order, in no order, or long before they are due.
TEST(NearlySorted, HasTheLeastFirstHoweverSlotsCome) {
  std::mt19937 random(17);
  for (const int most_late : {1, 3, 1000}) {
    NearlySorted<QueueSlot> sorted;
    std::set<QueueSlot> expected;
    std::uint64_t tie = 0;
    for (int i = 0; i < 30000; ++i) {
      const Picoseconds now = expected.empty() ? 0 : expected.begin()->key.at;
      const bool far = random() % 16 == 0;
      const auto late = static_cast<Picoseconds>(random() % most_late);
      const QueueSlot slot{{now + (far ? 5000 : 100 + late), ++tie}};
      const bool grows = i / 3000 % 2 == 0;
      if (expected.empty() || random() % 4 < (grows ? 2U : 1U)) {
        sorted.push(slot);
        expected.insert(slot);
      } else if (expected.erase(expected.begin()); random() % 2) {
        sorted.pop();
      } else {
        far ? sorted.replace_first_by_far(slot) : sorted.replace_first(slot);
        expected.insert(slot);
      }
      ASSERT_EQ(sorted.empty(), expected.empty());
      if (expected.empty()) continue;
      ASSERT_EQ(sorted.first().key.tie, expected.begin()->key.tie);
      const QueueSlot* const second = sorted.second();
      const bool known = second != nullptr;
      ASSERT_TRUE(!known || (expected.contains(*second) && sorted.first() < *second));
    }
  }
}

// Each user's number stays in its block, while blocks come, go and are freed. The blocks fill
// chunks of every size.
TEST(BlockStore, GivesEachUserABlockOfItsOwn) {
  using Block = std::array<std::uint64_t, 128>;
  std::mt19937 random(19);
  BlockStore<Block> store;
  std::vector<std::pair<Block*, std::uint64_t>> used;
  std::uint64_t next = 0;
  for (const std::size_t wanted : {10U, 9000U, 100U, 6000U, 0U, 50U}) {
    while (used.size() < wanted) {
      used.emplace_back(store.take(), ++next);
      used.back().first->front() = used.back().first->back() = next;
    }
    std::shuffle(used.begin(), used.end(), random);
    for (; used.size() > wanted; used.pop_back()) store.give_back(used.back().first);
    store.trim();
    for (const auto& [block, number] : used) {
      ASSERT_EQ(block->front(), number);
      ASSERT_EQ(block->back(), number);
    }
  }
}

// Chunks are aligned to their sizes: powers of two, even where the blocks do not fill them.
TEST(BlockStore, HoldsBlocksOfAnySize) {
  using Block = std::array<std::uint64_t, 3>;
  BlockStore<Block> store;
  std::vector<Block*> used;
  for (std::uint64_t i = 0; i < 200'000; ++i) used.emplace_back(store.take())->fill(i);
  for (std::uint64_t i = 0; i < used.size(); ++i) ASSERT_EQ(*used[i], (Block{i, i, i}));
}

}  // namespace
}  // namespace ghostrank
