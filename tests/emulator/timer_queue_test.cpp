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
