// The checker must find and name mistakes, and accept unusual but right schedules.
#include "collectives/check/checker.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/collectives/script.h"

namespace ghostrank {
namespace {

using ::testing::AssertionResult;

AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

std::string error_of(const Schedule& schedule) {
  const CheckReport report = check(schedule);
  EXPECT_EQ(report.ok, report.error.empty());
  return report.error;
}

const Collective kAllReduce{Func::all_reduce, 4, 10, 4, 0};

// A right ring all-reduce of four ranks, for a test to break.
Script::Actors ring() {
  return Script::copy_of(
      *find_algorithm("generic", Func::all_reduce, "ring")->make(kAllReduce, {}));
}
Step& step_of(Script::Actors& actors, std::size_t rank, std::size_t k) {
  return actors[rank][0].steps[k];
}

TEST(Checker, AcceptsTheUnbrokenRing) { EXPECT_EQ(error_of(Script(kAllReduce, ring())), ""); }

TEST(Checker, FindsAWrongBlock) {
  Script::Actors actors = ring();
  step_of(actors, 1, 0).send.offset = 3;  // [3, 6) instead of [0, 3): same length, other elements
  EXPECT_TRUE(contains(error_of(Script(kAllReduce, actors)), "reduces unlike elements"));
}

TEST(Checker, FindsASkippedReduction) {
  Script::Actors actors = ring();
  step_of(actors, 2, 1).on_recv = Combine::copy;
  const std::string error = error_of(Script(kAllReduce, actors));
  EXPECT_TRUE(contains(error, "ends with wrong content at"));
  EXPECT_TRUE(contains(error, "instead of"));
}

TEST(Checker, FindsAContributionThatIsCountedTwice) {
  Script::Actors actors = ring();
  step_of(actors, 3, 4).on_recv = Combine::reduce;  // a complete chunk on top of a partial sum
  EXPECT_TRUE(contains(error_of(Script(kAllReduce, actors)), "(x2)"));
}

TEST(Checker, FindsEndsThatDisagreeAboutASize) {
  Script::Actors actors = ring();
  step_of(actors, 0, 2).recv.count -= 1;
  const std::string error = error_of(Script(kAllReduce, actors));
  EXPECT_TRUE(contains(error, "rank 0 actor 0 step 2 expects"));
  EXPECT_TRUE(contains(error, "from rank 3, which sent"));
}

TEST(Checker, NamesRanksAndStepsOfADeadlock) {
  Script::Actors actors = ring();
  for (auto& rank : actors) rank[0].steps.erase(rank[0].steps.begin());  // no rank starts
  const std::string error = error_of(Script(kAllReduce, actors));
  EXPECT_TRUE(contains(error, "deadlock: rank 0 actor 0 step 0 waits for a message from rank 3"));
  EXPECT_TRUE(contains(error, "rank 3 actor 0 step 0 waits for a message from rank 2"));
}

TEST(Checker, FindsADeadlockForWantOfCredits) {
  // Both send two slices before they receive any.
  const Collective c{Func::all_reduce, 2, 4, 4, 0};
  Script::Actors actors(2);
  for (GroupRank r = 0; r < 2; ++r) {
    Step send = send_to(1 - r, {0, 4}), receive = receive_from(1 - r, {0, 4}, Combine::reduce);
    send.slices = receive.slices = 2;
    send.slice_elements = receive.slice_elements = 2;
    actors[r] = {{0, {send, receive}}};
  }
  EXPECT_EQ(error_of(Script(c, actors, {2})), "");
  EXPECT_TRUE(contains(error_of(Script(c, actors, {1})),
                       "rank 1 actor 0 step 0 waits for a credit from rank 0"));
}

TEST(Checker, FindsADeadlockForWantOfAPostedReceive) {
  // Both send two messages before they receive any.
  const Collective c{Func::all_reduce, 2, 4, 4, 0};
  Script::Actors actors(2);
  for (GroupRank r = 0; r < 2; ++r) {
    const auto half = [](std::uint64_t first) { return Block{first, 2}; };
    actors[r] = {{0,
                  {send_to(1 - r, half(0)), send_to(1 - r, half(2)),
                   receive_from(1 - r, half(0), Combine::reduce),
                   receive_from(1 - r, half(2), Combine::reduce)}}};
  }
  const auto posting = [](int receives) { return FlowControl{.posting = {.receives = receives}}; };
  EXPECT_EQ(error_of(Script(c, actors, posting(2))), "");
  EXPECT_TRUE(contains(error_of(Script(c, actors, posting(1))),
                       "rank 1 actor 0 step 0 waits for a receive to be posted by rank 0"));
}

TEST(Checker, FindsLeftOverMessages) {
  Script::Actors actors = ring();
  actors[2][0].steps.push_back(send_to(3, {0, 0}));
  EXPECT_TRUE(contains(error_of(Script(kAllReduce, actors)),
                       "1 message(s) left over on channel 0 from rank 2 to rank 3"));
}

TEST(Checker, FindsAResultThatNeverArrived) {
  const Collective c{Func::broadcast, 3, 5, 4, 0};
  const Script script(
      c, {{{0, {send_to(1, {0, 5})}}}, {{0, {receive_from(0, {0, 5}, Combine::copy)}}}, {}});
  EXPECT_TRUE(contains(error_of(script), "rank 2 ends with wrong content at 0: undefined content"));
}

TEST(Checker, FindsABarrierThatDoesNotHoldBack) {
  const Collective c{Func::barrier, 3, 0, 1, 0};
  const Script script(c, {{{0, {send_to(1, {})}}},
                          {{0, {relay(0, Combine::copy, 2, {})}}},
                          {{0, {receive_from(1, {}, Combine::copy)}}}});
  EXPECT_EQ(error_of(script), "rank 0 leaves the barrier without having heard of rank 1");
}

TEST(Checker, FindsBlocksOutsideTheBufferAndSlicesThatDoNotCover) {
  Script::Actors outside = ring();
  step_of(outside, 0, 0).send = {8, 3};
  EXPECT_TRUE(contains(error_of(Script(kAllReduce, outside)), "outside the buffer of 10 elements"));
  Script::Actors uncovered = ring();
  step_of(uncovered, 0, 0).slice_elements = 1;
  EXPECT_TRUE(contains(error_of(Script(kAllReduce, uncovered)), "leave out part of a block"));
}

TEST(Checker, FindsAWriteToTheInput) {
  const Collective c{Func::all_to_all, 2, 1, 4, 0};
  const Script script(c, {{{0, {send_to(1, {1, 1, Buffer::input})}}},
                          {{0, {receive_from(0, {0, 1, Buffer::input}, Combine::copy)}}}});
  EXPECT_TRUE(contains(error_of(script), "writes its input buffer"));
}

// Bruck's all-gather of three ranks: its second round wraps around the end, so its blocks are not
// contiguous.
const Collective kAllGather{Func::all_gather, 3, 2, 4, 0};
Script::Actors bruck() {
  return Script::copy_of(
      *find_algorithm("generic", Func::all_gather, "bruck")->make(kAllGather, {}));
}

TEST(Checker, AcceptsMessagesPutTogetherFromSeveralPlaces) {
  EXPECT_EQ(error_of(Script(kAllGather, bruck())), "");
}

TEST(Checker, FindsPiecesInAWrongPlaceOrOrder) {
  Script::Actors elsewhere = bruck();
  elsewhere[1][0].recv_pieces[1][0].offset = 2;  // overwrites its own block
  EXPECT_TRUE(contains(error_of(Script(kAllGather, elsewhere)), "ends with wrong content"));
  const Collective gather{Func::gather, 4, 2, 4, 0};
  Script::Actors swapped =
      Script::copy_of(*find_algorithm("generic", Func::gather, "binomial")->make(gather, {}));
  std::vector<Block>& two = swapped[2][0].send_pieces[1];
  ASSERT_EQ(two.size(), 2U);
  std::swap(two[0], two[1]);
  EXPECT_TRUE(contains(error_of(Script(gather, swapped)), "rank 0 ends with wrong content at 4"));
}

TEST(Checker, FindsPiecesThatAreNotAsLongAsTheirMessage) {
  Script::Actors actors = bruck();
  actors[0][0].send_pieces[0].pop_back();
  EXPECT_TRUE(
      contains(error_of(Script(kAllGather, actors)),
               "rank 0 actor 0 step 0: pieces of 0 elements in 1 slices, for a message of 2"));
}

TEST(Checker, FindsPiecesOutsideTheBuffer) {
  Script::Actors actors = bruck();
  actors[0][0].send_pieces[0][0].offset = 5;
  EXPECT_TRUE(contains(error_of(Script(kAllGather, actors)), "outside the buffer of 6 elements"));
}

TEST(Checker, FindsImpossiblePeers) {
  Script::Actors actors = ring();
  step_of(actors, 1, 0).send_to = 1;
  EXPECT_TRUE(contains(error_of(Script(kAllReduce, actors)), "rank 1 cannot be its peer"));
}

TEST(Checker, FindsTwoActorsOnOneConnection) {
  const Collective c{Func::broadcast, 2, 2, 4, 0};
  const Step receive = receive_from(0, {0, 1}, Combine::copy);
  Step second = receive;
  second.recv.offset = 1;
  const Script script(
      c, {{{0, {send_to(1, {0, 1})}}, {0, {send_to(1, {1, 1})}}}, {{0, {receive, second}}}});
  EXPECT_TRUE(contains(error_of(script), "does too"));
}

TEST(Checker, FindsAReceiverThatIsNotTheOneNamed) {
  const Collective c{Func::broadcast, 2, 2, 4, 0};
  const Script script(c, {{{0, {send_to(1, {0, 1}), send_to(1, {1, 1})}}},
                          {{0, {receive_from(0, {0, 1}, Combine::copy)}},
                           {0, {receive_from(0, {1, 1}, Combine::copy)}}}});
  EXPECT_TRUE(contains(error_of(script), "but receiver() names actor 0"));
}

// One actor of rank 1 receives data, another forwards it: right only if the forwarder happens to be
// late. Played in one order the content is right, in the other it is wrong; the checker must reject
// both.
TEST(Checker, FindsActorsOfARankThatRaceForAnElement) {
  const Collective c{Func::broadcast, 3, 1, 4, 2};
  const ScriptedActor receives{0, {receive_from(2, {0, 1}, Combine::copy)}};
  const ScriptedActor forwards{1, {send_to(0, {0, 1})}};
  const ScriptedActor end{1, {receive_from(1, {0, 1}, Combine::copy)}};
  const ScriptedActor root{0, {send_to(1, {0, 1})}};
  const std::string late = error_of(Script(c, {{end}, {forwards, receives}, {root}}));
  const std::string early = error_of(Script(c, {{end}, {receives, forwards}, {root}}));
  EXPECT_TRUE(contains(late, "no message puts one before the other"));
  EXPECT_TRUE(contains(early, "undefined content"));
}

// In either rank one actor sends and another reduces what the partner sends: if the partner is
// quick, the rank sends data that it has already reduced.
TEST(Checker, FindsAReductionThatMayOvertakeTheSendOfTheSameElement) {
  const Collective c{Func::all_reduce, 2, 1, 4, 0};
  const auto sends = [](GroupRank peer) { return ScriptedActor{0, {send_to(peer, {0, 1})}}; };
  const auto reduces = [](GroupRank peer) {
    return ScriptedActor{0, {receive_from(peer, {0, 1}, Combine::reduce)}};
  };
  const Script script(c, {{reduces(1), sends(1)}, {sends(0), reduces(0)}});
  EXPECT_TRUE(contains(error_of(script), "writes element 0 while actor"));
}

// The tree of a real library: one actor sums towards the root, another spreads the result, and the
// root does both at once with three peers.
//
//           0
//         / | \        every rank but the root has two actors on channel 0; the elements they
//        1  2  3       share are ordered only by the messages through the root
//       /
//      4
Script::Actors tree() {
  const Block all{0, 6};
  Peers leaves(1);
  leaves.push(2);
  leaves.push(3);
  Script::Actors actors(5);
  actors[0] = {{0, {relay(leaves, Combine::reduce, leaves, all)}}};
  actors[1] = {{0, {relay(4, Combine::reduce, 0, all)}}, {0, {relay(0, Combine::copy, 4, all)}}};
  for (const std::size_t leaf : {2, 3})
    actors[leaf] = {{0, {send_to(0, all)}}, {0, {receive_from(0, all, Combine::copy)}}};
  actors[4] = {{0, {send_to(1, all)}}, {0, {receive_from(1, all, Combine::copy)}}};
  for (auto& rank : actors)
    for (ScriptedActor& actor : rank)
      for (Step& step : actor.steps) {
        step.slices = 3;
        step.slice_elements = 2;
      }
  return actors;
}

TEST(Checker, AcceptsATreeWithThreePeersAndTwoActorsARank) {
  const Collective c{Func::all_reduce, 5, 6, 4, 0};
  for (const std::uint32_t credits : {0U, 1U, 2U}) {
    const CheckReport report = check(Script(c, tree(), {credits}), {.pairs = true});
    EXPECT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.messages, 24U);  // 8 connections x 3 slices
    EXPECT_EQ(report.bytes, 8U * 24);
    EXPECT_EQ(report.pairs.size(), 8U);
  }
}

TEST(Checker, FindsATreeWhoseRootSpreadsBeforeItHasSummed) {
  const Collective c{Func::all_reduce, 5, 6, 4, 0};
  Script::Actors actors = tree();
  Step sum = actors[0][0].steps[0], spread = sum;
  sum.send_to = {};
  spread.recv_from = {};
  actors[0][0].steps = {spread, sum};
  EXPECT_TRUE(contains(error_of(Script(c, actors)), "ends with wrong content"));
}

}  // namespace
}  // namespace ghostrank
