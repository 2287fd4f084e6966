// When packets without an answer are sent again.
#include "collectives/schemes/shared/slot_timers.h"

#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

constexpr int kBase = SlotTimers::kTicks;

// Whole ticks until the packet of slot 0 is sent again. The first one may come right after sent().
int ticks_to_time_out(SlotTimers& timers) {
  timers.sent(0);
  int ticks = 0;
  while (!timers.expired(0)) ++ticks;
  return ticks;
}

TEST(SlotTimers, WaitNoLongerForPacketsThatAreLostInALongCall) {
  SlotTimers timers(1, 1'000);
  timers.start_call();
  for (int packet = 0; packet < 10'000; ++packet) {
    timers.begin(0);
    if (packet % 3 > 0) continue;
    ASSERT_EQ(ticks_to_time_out(timers), kBase) << packet;
  }
}

TEST(SlotTimers, WaitLongerWhereAnswersAreLate) {
  SlotTimers timers(1, 1'000);
  timers.start_call();
  int ticks = 0;
  for (int packet = 0; packet < 200; ++packet) {  // each is sent three times
    timers.begin(0);
    for (int again = 0; again < 2; ++again) ticks = ticks_to_time_out(timers);
  }
  EXPECT_GE(ticks, 4 * kBase);
  for (int packet = 0; packet < 5'000; ++packet) timers.begin(0);
  EXPECT_EQ(ticks_to_time_out(timers), kBase);
  for (int again = 0; again < 1'000; ++again) ticks = ticks_to_time_out(timers);
  EXPECT_GT(ticks, kBase);
  timers.start_call();
  EXPECT_EQ(ticks_to_time_out(timers), kBase);
}

// Sums of eight workers, each of whose packets is lost one time in ten, on three ways: of the
// packets that wait two of three time out.
TEST(SlotTimers, WaitNoLongerWhereALossAtAnyWorkerHoldsUpAll) {
  std::mt19937 random(1);
  for (const std::size_t slots : {1, 64, 512}) {
    SlotTimers timers(static_cast<int>(slots), 1'000);
    timers.start_call();
    for (std::size_t slot = 0; slot < slots; ++slot) timers.begin(slot);
    for (std::size_t round = 0; round < 20'000 / slots; ++round) {
      std::vector<std::size_t> waiting;
      for (std::size_t slot = 0; slot < slots; ++slot)
        random() % 100 < 65 ? waiting.push_back(slot) : timers.begin(slot);
      for (const std::size_t slot : waiting) timers.sent(slot);
      for (int tick = 0; tick <= kBase; ++tick)
        for (const std::size_t slot : waiting)
          ASSERT_EQ(timers.expired(slot), tick == kBase) << slots << " slots, round " << round;
    }
  }
}

// A hundred packets in each slot are answered before the next one in it is lost.
TEST(SlotTimers, WaitNoLongerWhereAllSlotsAwaitALostPacketAtOnce) {
  constexpr int kSlots = 512;
  SlotTimers timers(kSlots, 1'000);
  timers.start_call();
  for (int round = 0; round < 20; ++round) {
    for (int packet = 0; packet < 100 * kSlots; ++packet) timers.begin(packet % kSlots);
    for (int slot = 0; slot < kSlots; ++slot) timers.sent(slot);
    for (int tick = 0; tick <= kBase; ++tick)
      for (int slot = 0; slot < kSlots; ++slot)
        ASSERT_EQ(timers.expired(slot), tick == kBase) << round;
  }
}

// Where the window's round trip is longer than that, every packet would be sent again for ever.
TEST(SlotTimers, WaitSixtyFourTimesAsLongAtMostOrAsLongAsThatOfTheDefault) {
  constexpr Picoseconds kDefault = 10'000'000'000;
  for (const auto& [timeout, times] :
       {std::pair{10 * kDefault, 64}, {kDefault, 64}, {kDefault / 1'000, 1'000}}) {
    SlotTimers timers(1, timeout);
    timers.start_call();
    int ticks = 0;
    for (int again = 0; again < 2'000; ++again) ticks = ticks_to_time_out(timers);
    EXPECT_EQ(ticks, times * kBase) << timeout;
  }
}

// Arms a timer, and keeps how long for.
class OneTimer final : public Io {
 public:
  using Io::send;
  bool send(std::span<const GroupParty>, const Note&, Carriage) override { return true; }
  void arm(std::uint32_t, Picoseconds after) override { tick = after; }
  void disarm(std::uint32_t) override {}
  void spend(Picoseconds) override {}
  void done(std::uint32_t) override {}
  Tensor& tensor(std::uint32_t) override { std::abort(); }
  Picoseconds tick = 0;
};

TEST(SlotTimers, SendNothingAgainBeforeItsTimeIsOver) {
  for (const Picoseconds timeout : {1, 7, 1'000, 1'000'003}) {
    SlotTimers timers(1, timeout);
    timers.start_call();
    OneTimer io;
    timers.arm(io);
    timers.begin(0);
    const Picoseconds waited = ticks_to_time_out(timers) * io.tick;
    EXPECT_GE(waited, timeout);
    EXPECT_LT(waited, timeout + kBase);
  }
}

}  // namespace
}  // namespace ghostrank
