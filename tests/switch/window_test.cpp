// SwitchML's worker against the switch's slots, with losses: the time and place of every packet.
#include "switch/window.h"

#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "switch/compiled/pool.h"

namespace ghostrank::switchml {
namespace {

using Chunk = Window::Chunk;

TEST(Window, LetsAWindowLeaveAndThenOneForEachResult) {
  Window worker(4);
  worker.start(7, false);
  std::vector<Chunk> left;
  while (const auto chunk = worker.next()) left.push_back(*chunk);
  ASSERT_EQ(left.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(left[i].packet, i);
    EXPECT_EQ(left[i].slot, i);
    EXPECT_EQ(left[i].set, 0);
    EXPECT_EQ(left[i].values, static_cast<std::int64_t>(i));
    EXPECT_EQ(left[i].exponent, Window::kNone);
  }
  ASSERT_TRUE(worker.result(2, 0));
  const auto next = worker.next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->packet, 6u);
  EXPECT_EQ(next->slot, 2);
  EXPECT_EQ(next->set, 1);
  EXPECT_FALSE(worker.next());
  EXPECT_FALSE(worker.result(2, 0));  // a repeated result
  ASSERT_TRUE(worker.in_flight(2));
  EXPECT_EQ(worker.in_flight(2)->packet, 6u);
}

TEST(Window, GoesOnWithTheOtherSetInTheNextJob) {
  Window worker(4);
  const auto play = [&](std::uint64_t chunks) {
    std::vector<int> places;
    worker.start(chunks, false);
    while (const auto chunk = worker.next()) {
      places.push_back(chunk->set * 4 + chunk->slot);
      worker.result(chunk->slot, chunk->set);
    }
    EXPECT_TRUE(worker.ended());
    return places;
  };
  EXPECT_EQ(play(6), (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(play(3), (std::vector{6, 7, 0}));
  EXPECT_EQ(play(0), (std::vector<int>{}));
  EXPECT_EQ(play(2), (std::vector{1, 2}));
}

TEST(Window, SendsExponentsAWindowAheadOfTheirValues) {
  EXPECT_EQ(Window::packets_of(10, true, 4), 14u);
  EXPECT_EQ(Window::packets_of(3, true, 4), 6u);
  EXPECT_EQ(Window::packets_of(0, true, 4), 0u);
  Window worker(4);
  worker.start(3, true);
  std::vector<Chunk> left;
  while (const auto chunk = worker.next()) left.push_back(*chunk);
  ASSERT_EQ(left.size(), 3u);  // the fourth would bring values, whose exponent is not known yet
  EXPECT_EQ(left[2].exponent, 2);
  EXPECT_EQ(left[2].values, Window::kNone);
  worker.result(1, 0);
  EXPECT_FALSE(worker.next());  // packet 4 needs slot 0, too
  worker.result(0, 0);
  const auto third = worker.next();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->packet, 4u);
  EXPECT_EQ(third->values, 1);
  EXPECT_EQ(third->exponent, Window::kNone);
}

// Workers, a switch, and links between them that keep their order but lose a share of their
// packets. Every chunk of every job is summed exactly once for every worker.
class Play {
 public:
  Play(int workers, int window, double loss, unsigned seed)
      : pool_(workers, window, 32), loss_(loss), random_(seed) {
    for (int w = 0; w < workers; ++w) workers_.emplace_back(window);
    to_switch_.resize(workers_.size());
    to_worker_.resize(workers_.size());
  }

  void job(std::uint64_t chunks, bool exponents) {
    for (Window& w : workers_) w.start(chunks, exponents);
    sums_.assign(workers_.size(), {});
    number_ += 1000;
    for (int round = 0; round < 100'000 && !all_ended(); ++round) step();
    ASSERT_TRUE(all_ended());
    for (const auto& sums : sums_) {
      ASSERT_EQ(sums.size(), chunks);
      for (const auto& [chunk, sum] : sums) {
        std::int32_t expected = 0;
        for (std::size_t w = 0; w < workers_.size(); ++w) expected += value(w, chunk);
        EXPECT_EQ(sum, expected) << "chunk " << chunk;
      }
    }
  }

 private:
  struct Result {
    std::uint16_t slot;
    std::uint8_t set;
    std::int32_t sum;
  };
  std::int32_t value(std::size_t worker, std::int64_t chunk) const {
    return static_cast<std::int32_t>((worker + 1) * (worker + 1)) *
           (number_ + static_cast<std::int32_t>(chunk));
  }
  bool lost() { return std::uniform_real_distribution<>(0, 1)(random_) < loss_; }
  bool all_ended() const {
    return std::all_of(workers_.begin(), workers_.end(), [](const Window& w) { return w.ended(); });
  }
  void send(std::size_t worker, const Chunk& chunk) {
    if (!lost()) to_switch_[worker].push_back(chunk);
  }
  void step() {
    const std::size_t w = random_() % workers_.size();
    switch (random_() % 8) {
      case 0:
        while (const auto chunk = workers_[w].next()) send(w, *chunk);
        break;
      case 1:  // any time-out
        if (const auto chunk = workers_[w].in_flight(
                static_cast<std::uint16_t>(random_() % static_cast<unsigned>(pool_.slots()))))
          send(w, *chunk);
        break;
      case 2:
      case 3:
      case 4:
        if (!to_switch_[w].empty()) at_switch(w);
        break;
      default:
        if (!to_worker_[w].empty()) at_worker(w);
    }
  }
  void at_switch(std::size_t w) {
    const Chunk chunk = to_switch_[w].front();
    to_switch_[w].pop_front();
    std::vector<std::byte> values(32 * 4);
    if (chunk.values != Window::kNone)
      store32(values.data(), static_cast<std::uint32_t>(value(w, chunk.values)));
    Packet packet{.slot = chunk.slot, .set = chunk.set, .elements = 32, .values = values.data()};
    const Verdict verdict = pool_.receive(static_cast<int>(w), chunk.slot, packet);
    const Result result{chunk.slot, chunk.set, pool_.values(chunk.slot, chunk.set)[0]};
    for (std::size_t to = 0; to < workers_.size(); ++to)
      if (verdict == Verdict::broadcast || (verdict == Verdict::retransmit && to == w))
        if (!lost()) to_worker_[to].push_back(result);
  }
  void at_worker(std::size_t w) {
    const Result result = to_worker_[w].front();
    to_worker_[w].pop_front();
    if (const auto chunk = workers_[w].result(result.slot, result.set);
        chunk && chunk->values != Window::kNone) {
      EXPECT_TRUE(sums_[w].emplace(chunk->values, result.sum).second);
    }
  }

  Pool pool_;
  double loss_;
  std::mt19937 random_;
  std::vector<Window> workers_;
  std::vector<std::deque<Chunk>> to_switch_;
  std::vector<std::deque<Result>> to_worker_;
  std::vector<std::map<std::int64_t, std::int32_t>> sums_;
  std::int32_t number_ = 0;
};

TEST(Window, GetsEveryChunksSumOnceWhateverIsLost) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Play play(1 + static_cast<int>(random() % 8), 1 + static_cast<int>(random() % 9),
              seed % 3 * 0.1, seed);
    for (int job = 0; job < 4; ++job) {
      play.job(random() % 30, random() % 2 == 0);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace ghostrank::switchml
