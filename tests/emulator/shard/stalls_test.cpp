#include "emulator/shard/measured/stalls.h"

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

std::string text_of(const std::vector<Gap>& gaps) {
  std::string text;
  for (const Gap& g : gaps) text += std::to_string(g.from) + "-" + std::to_string(g.to) + " ";
  return text;
}

TEST(CommonGaps, AreWhatEveryShardWasQuietIn) {
  EXPECT_EQ(text_of(common_gaps({{{10, 20}, {40, 90}, {100, kEndless}},
                                 {{0, 15}, {30, 60}, {70, 80}, {85, kEndless}}},
                                1)),
            "10-15 40-60 70-80 85-90 ");
}

TEST(CommonGaps, NeedToBeLongerThanTheThreshold) {
  EXPECT_EQ(text_of(common_gaps({{{0, 10}, {20, 31}}}, 10)), "20-31 ");
}

TEST(CommonGaps, AreNotWhatFollowsTheEnd) {
  EXPECT_EQ(text_of(common_gaps({{{5, kEndless}}, {{3, kEndless}}}, 1)), "");
}

TEST(CommonGaps, AreNoneWhereAShardWasAlwaysAtWork) {
  EXPECT_EQ(text_of(common_gaps({{{0, 100}}, {}}, 1)), "");
}

TEST(StallThreshold, IsASecondOrTenTimesAPieceOrHalfTheTimeOut) {
  JobSpec spec;
  spec.cluster.nic = {400e9, 0};
  EXPECT_DOUBLE_EQ(seconds(stall_threshold(spec, 1)), 1);
  EXPECT_DOUBLE_EQ(seconds(stall_threshold(spec, 4)), 0.25);  // emulated
  spec.cluster.nic = {1e6, 0};                                // 8.4 s for a piece of 1 MiB
  EXPECT_NEAR(seconds(stall_threshold(spec, 1)), 30, 1e-6);
  spec.run.stall_timeout_s = 1000;
  EXPECT_NEAR(seconds(stall_threshold(spec, 1)), 83.9, 0.1);
}

Pulse quiet_since(Picoseconds since, const std::string& stuck) {
  Pulse p;
  p.quiet = true;
  p.since = since;
  p.stuck = stuck;
  return p;
}

TEST(Silence, IsLongEnoughForProcess0ToNameWhoIsStuck) {
  RunSpec run;
  EXPECT_EQ(silence_of_the_lost(run), std::chrono::seconds(20));  // stall_timeout_s 60
  run.stall_timeout_s = 3;
  EXPECT_EQ(silence_of_the_lost(run), std::chrono::seconds(5));
}

TEST(StallWatch, SeesTheLastOfAllToBecomeQuiet) {
  StallWatch watch(0, 2, 100);
  watch.note(Host(0), quiet_since(50, "a"), 60);
  watch.note(Host(1), Pulse{}, 60);
  EXPECT_FALSE(watch.quiet_since(70).has_value());
  watch.note(Host(1), quiet_since(65, "b"), 70);
  EXPECT_EQ(watch.quiet_since(75), 65);
  EXPECT_EQ(watch.who_is_stuck(75), "a; b");
}

TEST(StallWatch, TakesSilenceForQuietAndSaysSo) {
  StallWatch watch(0, 2, 100);
  watch.note(Host(0), quiet_since(50, "a"), 160);
  watch.note(Host(1), Pulse{}, 40);
  EXPECT_FALSE(watch.quiet_since(140).has_value());
  EXPECT_EQ(watch.quiet_since(141), 50);
  EXPECT_EQ(watch.who_is_stuck(141),
            "a; host 1 is not heard of: it is stopped or cannot be reached");
}

TEST(StallWatch, WaitsForNobodyWhoHasEnded) {
  StallWatch watch(0, 1, 100);
  Pulse p = quiet_since(10, "");
  p.ended = true;
  watch.note(Host(0), p, 20);
  EXPECT_TRUE(watch.all_ended());
  EXPECT_EQ(watch.who_is_stuck(500), "no rank waits for anything");
}

TEST(StallWatch, IgnoresPulsesOfAnotherSegment) {
  StallWatch watch(4, 1, 100);
  Pulse p;
  p.ended = true;
  watch.note(Host(0), p, 20);
  EXPECT_FALSE(watch.all_ended());
}

TEST(Pulse, SurvivesItsJourneyAndNothingElseIsOne) {
  const std::string blob = quiet_since(7, "who").to_blob();
  Pulse p;
  BlobReader whole(blob);
  ASSERT_TRUE(p.read(whole));
  EXPECT_EQ(p.since, 7);
  EXPECT_EQ(p.stuck, "who");
  for (std::size_t cut = 0; cut < blob.size(); ++cut) {
    BlobReader part(std::string_view(blob).substr(0, cut));
    EXPECT_FALSE(p.read(part)) << cut;
  }
}

}  // namespace
}  // namespace ghostrank
