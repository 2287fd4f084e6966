// What SwitchML's workers agree on, given their states.
#include <gtest/gtest.h>

#include "collectives/schemes/switchml/agreement.h"

namespace ghostrank::switchml {
namespace {

constexpr Waiting kNo = Waiting::nothing, kSome = Waiting::some, kLong = Waiting::long_since;

// Workers of two slots; a state comes as one note.
SlotList decided(const std::vector<SlotList>& states, std::uint32_t fallback = 0) {
  Agreement agreement(static_cast<int>(states.size()), 2);
  for (std::size_t w = 0; w < states.size(); ++w) {
    EXPECT_FALSE(agreement.whole());
    agreement.add(static_cast<int>(w), states[w].bytes(0, 2));
  }
  EXPECT_TRUE(agreement.whole());
  return agreement.decide(fallback);
}

SlotList state(SlotState one, SlotState other, std::uint32_t silence = 100) {
  return {silence, {}, {one, other}};
}

TEST(SwitchMlAgreement, IsToGoOnWhileAPacketIsMissingOrYoung) {
  const SlotState done{6, kNo}, other{7, kNo};
  EXPECT_EQ(decided({state(done, other), state(done, other)}).decision, Decision::go_on);
  EXPECT_EQ(decided({state({6, kLong}, other), state(done, other)}).decision, Decision::go_on);
  EXPECT_EQ(decided({state({6, kLong}, other), state({6, kSome}, other)}).decision,
            Decision::go_on);
}

TEST(SwitchMlAgreement, IsToRestartWhereAllHaveWaitedForLong) {
  const SlotState other{7, kNo};
  const SlotList agreed =
      decided({state({6, kLong}, other), state({6, kLong}, other), state({6, kLong}, other)});
  EXPECT_EQ(agreed.decision, Decision::restart);
  EXPECT_EQ(agreed.slots[0].completed, 6u);
  EXPECT_FALSE(agreed.slots[0].parts);
}

// Worker 1 lacks packet 8 of slot 0, which the others have. Numbers wrap.
TEST(SwitchMlAgreement, IsToGiveWhatSomeHaveToThoseThatLackIt) {
  for (const std::uint32_t base : {6u, 0xfffffffeu}) {
    Agreement agreement(3, 2);
    const SlotState other{base + 1, kNo};
    agreement.add(0, state({base + 2, kSome}, other).bytes(0, 2));
    agreement.add(1, state({base, kLong}, other).bytes(0, 1));
    EXPECT_FALSE(agreement.whole());  // a long list comes in several notes
    agreement.add(1, state({base, kLong}, other).bytes(1, 1));
    agreement.add(2, state({base + 2, kNo}, other).bytes(0, 2));
    const SlotList agreed = agreement.decide(0);
    EXPECT_EQ(agreed.decision, Decision::restart);
    EXPECT_EQ(agreed.slots[0].completed, base + 2);
    EXPECT_TRUE(agreed.slots[0].parts);
    EXPECT_FALSE(agreed.slots[1].parts);
    EXPECT_EQ(agreement.lacking(0), std::vector{1});
  }
}

TEST(SwitchMlAgreement, IsToFallBackWhenNoneThatWaitsHasHeardOfTheSwitch) {
  const SlotState waits{6, kLong}, other{7, kNo};
  const auto with = [&](std::uint32_t one, std::uint32_t two) {
    return decided({state(waits, other, one), state(waits, other, two)}, 50).decision;
  };
  EXPECT_EQ(with(50, 90), Decision::fall_back);
  EXPECT_EQ(with(90, 49), Decision::restart);
  // The silence of a worker that waits for no packet does not count.
  EXPECT_EQ(decided({state({6, kNo}, other, 0), state({4, kLong}, other, 60)}, 50).decision,
            Decision::fall_back);
}

TEST(SwitchMlAgreement, IgnoresMalformedLists) {
  SlotList list;
  EXPECT_FALSE(list.add(std::vector<std::byte>(4)));
  EXPECT_FALSE(list.add(std::vector<std::byte>(7)));
  EXPECT_TRUE(list.slots.empty());
}

}  // namespace
}  // namespace ghostrank::switchml
