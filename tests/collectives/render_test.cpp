// Golden renderings of schedules that are small enough to check by hand.
#include "collectives/exchange/render.h"

#include <gtest/gtest.h>

#include "collectives/schedule.h"
#include "tests/collectives/script.h"

namespace ghostrank {
namespace {

std::unique_ptr<Schedule> ring(std::uint64_t count, const Communicator& comm = {}) {
  return find_algorithm("generic", Func::all_reduce, "ring")
      ->make({Func::all_reduce, 3, count, 4, 0}, comm);
}

TEST(Picture, ShowsARingStepByStep) {
  EXPECT_EQ(picture(*ring(8), 1),
            "allreduce, rank 1 of 3, count 8 x 4 bytes\n"
            "channel  step  from    does  elements  to  elements  bytes  messages\n"
            "      0     0                           2    [0, 3)     12         1\n"
            "      0     1     0  reduce    [6, 8)   2    [6, 8)      8         1\n"
            "      0     2     0  reduce    [3, 6)   2    [3, 6)     12         1\n"
            "      0     3     0    copy    [0, 3)   2    [0, 3)     12         1\n"
            "      0     4     0    copy    [6, 8)                              1\n");
}

TEST(Picture, LeavesOutStepsWithoutPeers) {
  const Collective c{Func::reduce, 4, 5, 2, 1};
  EXPECT_EQ(picture(*find_algorithm("generic", c.func, "auto")->make(c, {}), 2),
            "reduce, rank 2 of 4, count 5 x 2 bytes, root 1\n"
            "channel  step  from  does  elements  to  elements  bytes  messages\n"
            "      0     0                         1    [0, 5)     10         1\n");
}

TEST(Picture, NamesTheBufferWhereItIsNotTheWorkBuffer) {
  Step first, second;
  first.send_to = 1;
  first.send = {0, 2, Buffer::input};
  second.send_to = second.recv_from = 1;
  second.send = {2, 2, Buffer::scratch};
  second.recv = {0, 2, Buffer::none};
  const Script script({Func::all_reduce, 2, 4, 4, 0}, {{{0, {first, second}, {}, {}}}, {}});
  EXPECT_EQ(picture(script, 0),
            "allreduce, rank 0 of 2, count 4 x 4 bytes\n"
            "channel  step  from  does       elements  to        elements  bytes  messages\n"
            "      0     0                              1    input [0, 2)      8         1\n"
            "      0     1     1  copy  unread [0, 2)   1  scratch [2, 4)      8         1\n");
}

TEST(Messages, AreCountedInRunsOfEqualOnes) {
  const RankMessages of = messages_of(*ring(8), 1);
  EXPECT_EQ(of.sends, (RunsByConnection{{{0, 2}, {{12, 1}, {8, 1}, {12, 2}}}}));
  EXPECT_EQ(of.recvs, (RunsByConnection{{{0, 0}, {{8, 1}, {12, 2}, {8, 1}}}}));
}

TEST(Messages, WithoutBytesAreKept) {
  const RankMessages of = messages_of(*ring(1), 0);
  EXPECT_EQ(of.sends, (RunsByConnection{{{0, 1}, {{0, 2}, {4, 1}, {0, 1}}}}));
  EXPECT_EQ(of.recvs, (RunsByConnection{{{0, 2}, {{0, 1}, {4, 1}, {0, 2}}}}));
}

TEST(Messages, AreListedByChannelAndPeer) {
  const RankMessages of = messages_of(*ring(6, {{}, 2, 0, {}}), 0);
  EXPECT_EQ(of.sends, (RunsByConnection{{{0, 1}, {{4, 4}}}, {{1, 1}, {{4, 4}}}}));
  EXPECT_EQ(of.recvs, (RunsByConnection{{{0, 2}, {{4, 4}}}, {{1, 2}, {{4, 4}}}}));
}

TEST(Messages, AreNoneInAGroupOfOne) {
  const Collective c{Func::all_reduce, 1, 5, 4, 0};
  const RankMessages of = messages_of(*find_algorithm("generic", c.func, "ring")->make(c, {}), 0);
  EXPECT_TRUE(of.sends.empty());
  EXPECT_TRUE(of.recvs.empty());
}

}  // namespace
}  // namespace ghostrank
