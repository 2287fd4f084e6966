// Events in the order in which they are due, whatever is pushed and popped.
#include "emulator/shard/timer_queue.h"

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/common/moment.h"

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

// Sources whose events come as they are due, and some too early. Now and then a source gives what
// is due before its last event, out of turn; all others keep their order.
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

// Holds even for the last of a block, and when pushes allocate further blocks.
TEST(TimerQueue, WhatWasPoppedStaysAsItIsUntilTheNextPop) {
  std::mt19937 random(13);
  TimerQueue<Numbered> queue;
  int number = 0;
  for (int pushes = 0; pushes < 300; ++pushes) {
    const auto push = [&] {
      queue.push(static_cast<Picoseconds>(number / 3), 0).number = number;
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

}  // namespace
}  // namespace ghostrank
