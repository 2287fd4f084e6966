// The agent checker passes right schemes and names the mistake of wrong ones.
#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/check/agents/values.h"
#include "collectives/schemes/shared/numbers.h"
#include "tests/collectives/agent_schemes.h"

namespace ghostrank {
namespace {

using testing::Asking, testing::Counting, testing::Direct, testing::Mistake;

constexpr Survives kAll{true, true, true, true};
constexpr Misfortunes kMany{0.2, 0.2, 0.2, 0.2};

Collective call_of(Func func, int size, std::uint64_t count) {
  Collective c{func, size, count, 4, size - 1};
  if (is_ragged(func)) {
    std::vector<std::uint64_t> counts(counts_needed(func, size), count);
    for (std::size_t i = 0; i < counts.size(); i += 3) counts[i] = i % 2 == 0 ? 0 : count + i;
    c.counts = std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
  }
  return c;
}

std::vector<Call> all_reduces(int size, int calls, DataType type = DataType::int64) {
  return calls_like(call_of(Func::all_reduce, size, 10), type, calls);
}

// The checker's error in one play of three all-reduces; empty if there is none.
std::string found(const Ends& ends, AgentCheckOptions options = {}) {
  return check(ends, all_reduces(ends.size(), 3), options).error;
}

// The first error in up to 99 plays with different seeds.
std::string found_soon(const Ends& ends, AgentCheckOptions options) {
  for (options.seed = 1; options.seed < 100; ++options.seed)
    if (const std::string error = found(ends, options); !error.empty()) return error;
  return "";
}

#define EXPECT_SAYS(text, part)                            \
  do {                                                     \
    const std::string said = (text);                       \
    EXPECT_NE(said.find(part), std::string::npos) << said; \
  } while (false)

TEST(AgentChecker, PassesARightSchemeOfEveryFunctionForEverySizeUpTo8) {
  for (int f = 0; f < kFuncs; ++f)
    for (int size = 1; size <= 8; ++size) {
      const auto func = static_cast<Func>(f);
      if (func == Func::send_recv && size < 2) continue;
      const AgentProof proof = prove(Direct(size), call_of(func, size, 7), 30);
      EXPECT_TRUE(proof.report.ok) << name_of(func) << " of " << size << ": " << proof.report.error;
      EXPECT_EQ(proof.plays, 30);
      EXPECT_EQ(proof.refused, func == Func::all_reduce ? "no uint8" : "");
    }
}

TEST(AgentChecker, PassesASchemeThatSurvivesAllMisfortunesForHundredsOfSeeds) {
  for (int size = 1; size <= 8; ++size) {
    const Asking asking(size, kAll);
    AgentCheckOptions options{.misfortunes = kMany, .no_room = 0.1, .pause = 1'000'000'000};
    options.overlap = 2;
    for (options.seed = 0; options.seed < 200; ++options.seed) {
      const AgentReport report = check(asking, all_reduces(size, 4), options);
      ASSERT_TRUE(report.ok) << size << " ranks: " << report.error;
      EXPECT_GT(report.lost + report.doubled + report.late + report.overtaken, 0U);
    }
    EXPECT_TRUE(prove(asking, call_of(Func::all_reduce, size, 100), 60).report.ok);
  }
}

TEST(AgentChecker, PlaysTheSameAgainFromTheSameSeed) {
  const auto play = [](std::uint64_t seed) {
    const AgentReport r = check(Asking(5, kAll), all_reduces(5, 4),
                                {.seed = seed, .misfortunes = kMany, .no_room = 0.1});
    return std::vector{r.events, r.packets, r.lost, r.doubled, r.late, r.overtaken, r.refused};
  };
  EXPECT_EQ(play(7), play(7));
  EXPECT_NE(play(7), play(8));
}

TEST(AgentChecker, KeepsTheOrderOfReliableNotesAndOfPacketsThatMayNotBeOvertaken) {
  const auto found = [](const Counting& counting) {
    const auto calls = calls_like({Func::send_recv, 2, 0, 4, 0}, DataType::int32, 1);
    std::string error;
    for (std::uint64_t seed = 0; seed < 50 && error.empty(); ++seed)
      error = check(counting, calls,
                    {.seed = seed, .misfortunes = {.delay = 0.3, .reordering = 0.3}, .slow = 0.3})
                  .error;
    return error;
  };
  EXPECT_EQ(found(Counting(Carriage::reliable, {.delay = true, .reordering = true})), "");
  EXPECT_EQ(found(Counting(Carriage::packet, {.delay = true})), "");
  EXPECT_SAYS(found(Counting(Carriage::packet, {.reordering = true})), "out of order");
}

TEST(AgentChecker, ProvesNoSchemeThatMakesAMistake) {
  const Collective c = call_of(Func::all_reduce, 4, 10);
  for (int m = 1; m <= static_cast<int>(Mistake::chatters); ++m) {
    const auto mistake = static_cast<Mistake>(m);
    if (mistake < Mistake::helper_says_done || mistake == Mistake::throws)
      EXPECT_FALSE(prove(Direct(4, mistake), c, 60).report.ok) << m;
    else
      EXPECT_FALSE(prove(Asking(4, kAll, mistake), c, 60).report.ok) << m;
  }
}

TEST(AgentChecker, FindsWhatIsNeverSentAgain) {
  const std::string error =
      found_soon(Asking(3, kAll, Mistake::forgets_the_timer), {.misfortunes = {.loss = 0.2}});
  EXPECT_SAYS(error, "deadlock: rank ");
  EXPECT_SAYS(error, " waits in call ");
  EXPECT_SAYS(error, "packets lost: ");
  EXPECT_SAYS(error, "(seed ");
}

TEST(AgentChecker, FindsARetransmissionThatIsAddedTwice) {
  const std::string error =
      found_soon(Asking(3, kAll, Mistake::adds_again), {.misfortunes = {.duplicates = 0.2}});
  EXPECT_SAYS(error, "ends with wrong content at 0: ");
  EXPECT_SAYS(error, "element 0 summed over ranks 0 1 2; that of rank ");
  EXPECT_SAYS(error, " twice (seed ");
  EXPECT_SAYS(error, "on_note from server 3, tag 0, call ");
}

TEST(AgentChecker, FindsAnAnswerToACallThatIsOver) {
  const std::string error =
      found_soon(Asking(3, kAll, Mistake::mixes_up_calls),
                 {.misfortunes = {.duplicates = 0.2, .delay = 0.2, .reordering = 0.2}});
  EXPECT_SAYS(error, "ends with wrong content at 0: ");
}

TEST(AgentChecker, LeavesOutMisfortunesThatAreNotClaimed) {
  EXPECT_EQ(found_soon(Asking(3, {}, Mistake::forgets_the_timer), {.misfortunes = kMany}), "");
  EXPECT_EQ(found_soon(Asking(3, {}, Mistake::adds_again), {.misfortunes = kMany}), "");
}

TEST(AgentChecker, FindsTrafficThatIsOtherThanPromised) {
  EXPECT_SAYS(found(Direct(3, Mistake::promises_other_traffic)),
              "rank 0 sent 3 reliable notes of 264 B in all to rank 1, traffic() says 3 of 267 B");
}

TEST(AgentChecker, FindsADoneThatIsOneTooMany) {
  EXPECT_SAYS(found(Direct(3, Mistake::says_done_twice)),
              "rank 1, call 0: says done, but its part in the call is over (seed 1, event ");
  EXPECT_SAYS(found(Direct(3, Mistake::says_done_of_another)),
              "rank 0, call 7: says done, but there is no such call");
  EXPECT_SAYS(found(Asking(3, {}, Mistake::helper_says_done)),
              "server 3, call 0: says done, which only a rank may");
}

TEST(AgentChecker, FindsADoneThatIsTooEarly) {
  EXPECT_SAYS(found(Direct(2, Mistake::says_done_early)),
              "element 0 summed over ranks 0 1; that of rank 0 is missing (seed 1");
  const Direct barrier(3, Mistake::says_done_early);
  EXPECT_SAYS(check(barrier, calls_like(call_of(Func::barrier, 3, 0), DataType::int32, 1),
                    {.seed = 3, .pause = 100'000'000})
                  .error,
              "leaves the barrier before rank ");
}

TEST(AgentChecker, FindsWhatIsForgottenWhenThereIsNoRoom) {
  const std::string error =
      found_soon(Direct(3, Mistake::forgets_what_was_refused), {.no_room = 0.1});
  EXPECT_SAYS(error, "deadlock: ");
  EXPECT_SAYS(error, "sends refused: ");
}

TEST(AgentChecker, FindsNotesThatCannotTravel) {
  EXPECT_SAYS(found(Direct(3, Mistake::sends_to_itself)), "sends to itself");
  EXPECT_SAYS(found(Direct(3, Mistake::sends_to_nobody_known)),
              "sends to party 3, which there is not");
  EXPECT_SAYS(found(Direct(3, Mistake::sends_twice_at_once)), " twice at once");
  EXPECT_SAYS(found(Direct(3, Mistake::says_too_much)), "sends 32769 B of words, more than 32768");
  EXPECT_SAYS(found(Direct(3, Mistake::sends_half_the_content)),
              "sends 40 B as 10 elements of int64");
  EXPECT_SAYS(found(Asking(3, {}), {.datagram_bytes = 79}),
              "sends a packet of 80 B, more than a datagram's 79");
}

TEST(AgentChecker, FindsMisuseOfTensors) {
  EXPECT_SAYS(found(Direct(3, Mistake::reads_too_far)),
              "reads 1 elements from 10 on of a tensor of 10");
  EXPECT_SAYS(found(Direct(3, Mistake::writes_too_far)),
              "writes 1 elements from 10 on of a tensor of 10");
  EXPECT_SAYS(found(Direct(3, Mistake::keeps_the_tensor)),
              "reads a tensor that is not lent to it now");
  EXPECT_SAYS(found(Direct(3, Mistake::keeps_what_was_read)), "ends with wrong content");
}

TEST(AgentChecker, BoundsASchemeThatNeverEnds) {
  const std::string error =
      check(Asking(3, {}, Mistake::chatters), all_reduces(3, 1), {.most_events = 10'000}).error;
  EXPECT_SAYS(error, "server 3: still busy after 10000 events; no call is open");
}

TEST(AgentChecker, PlaysSparseTensorsWhereTheSchemeTakesThem) {
  const Collective sum = call_of(Func::all_reduce, 4, 300);
  EXPECT_SAYS(prove(Direct(4, Mistake::takes_zeros_for_all), sum, 30).report.error,
              "wrong content at");
  const AgentProof dense = prove(Direct(4, Mistake::refuses_zeros), sum, 30);
  EXPECT_TRUE(dense.report.ok) << dense.report.error;
  const Collective gather = call_of(Func::all_gather, 4, 300);
  EXPECT_TRUE(prove(Direct(4, Mistake::takes_zeros_for_all), gather, 30).report.ok);
}

TEST(AgentChecker, NamesWhoThrows) {
  EXPECT_SAYS(found(Direct(3, Mistake::throws)), "rank 1 throws: out of ideas");
}

TEST(AgentChecker, SaysWhereItIs) {
  const AgentReport report =
      check(Direct(3, Mistake::says_done_twice), all_reduces(3, 3), {.seed = 5});
  EXPECT_EQ(report.at.seed, 5U);
  EXPECT_EQ(report.at.party, 1);
  EXPECT_EQ(report.at.call, 0);
  EXPECT_GT(report.at.event, 0U);
}

TEST(AgentChecker, RefusesCallsThatTheSchemeRefusesOrThatAreNone) {
  const Direct direct(3);
  EXPECT_SAYS(check(direct, all_reduces(3, 1, DataType::uint8)).error,
              "call 0, allreduce is refused: no uint8");
  EXPECT_SAYS(check(direct, all_reduces(4, 1)).error, "is of 4 ranks, the scheme of 3");
  std::vector<Call> same = all_reduces(3, 2);
  same[1].number = 0;
  EXPECT_SAYS(check(direct, same).error, "two calls have one number");
  EXPECT_SAYS(check(Direct(257), all_reduces(257, 1, DataType::bfloat16)).error,
              "too many ranks for exact sums of bfloat16: at most 256");
}

// A scheme whose results may be off by 1.
class Rounding final : public Ends {
 public:
  Rounding() : Ends(1) {}
  std::unique_ptr<Agent> agent(GroupParty) const override { return nullptr; }
  std::vector<Edge> traffic(const Call&) const override { return {}; }
  double error_bound(const Call&, double) const override { return 1; }
};

TEST(AgentChecker, JudgesRoundedResultsInTheirOwnType) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    const checking::CallValues values(calls_like(call_of(Func::all_reduce, 1, 3), type, 1)[0], 1,
                                      Rounding());
    for (std::size_t e = 0; e < 3; ++e) {
      std::vector<float> result = floats_of(type, values.work(0));
      result[e] += 1;
      EXPECT_EQ(values.wrong(0, bytes_of_floats(type, result)), "") << name_of(type);
      result[e] += 8;
      EXPECT_NE(values.wrong(0, bytes_of_floats(type, result)), "") << name_of(type);
    }
  }
}

// Asking, whose server is a switch that counts at its site how often its agent was made.
class Remembering final : public Ends {
 public:
  Remembering() : Ends(3), asking_(3, kAll) {}
  std::vector<Helper> helpers() const override { return {{PartyKind::network_switch}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override { return asking_.agent(party); }
  std::unique_ptr<Agent> agent_at(GroupParty party, Site& site) const override {
    if (party == size()) made = std::max(made, ++site.get<int>());
    return agent(party);
  }
  std::vector<Edge> traffic(const Call& call) const override { return asking_.traffic(call); }
  Survives survives() const override { return {.restart = true}; }

  mutable int made = 0;  // largest count at one site

 private:
  Asking asking_;
};

TEST(AgentChecker, ASwitchThatFailsForgetsWhatWasAtItsSite) {
  const Remembering ends;
  const AgentReport report = check(ends, all_reduces(3, 3), {.switches = {.failure = 0.5}});
  EXPECT_GT(report.failures, 0U);
  EXPECT_EQ(ends.made, 1);
}

TEST(AgentChecker, TriesEveryClaimAlone) {
  const auto calls = all_reduces(4, 3);
  for (const Claim& claim : check_claims(Asking(4, kAll), calls, 50)) {
    EXPECT_TRUE(claim.holds()) << claim.misfortune << ": " << claim.text();
    EXPECT_EQ(claim.plays, 50);
    EXPECT_GT(claim.met, 0U) << claim.misfortune;
  }
  for (const Claim& claim : check_claims(Asking(4, {}), calls, 50)) {
    EXPECT_EQ(claim.text(), "not claimed");
    EXPECT_EQ(claim.plays, 0);
  }
}

TEST(AgentChecker, SaysWhichClaimDoesNotHold) {
  const auto calls = all_reduces(4, 3);
  const auto claims = check_claims(Asking(4, kAll, Mistake::adds_again), calls, 100);
  EXPECT_EQ(claims[1].misfortune, "duplicates");
  EXPECT_SAYS(claims[1].text(), "does not hold: ");
  EXPECT_SAYS(claims[1].text(), " twice (seed ");
  const auto timers = check_claims(Asking(4, kAll, Mistake::forgets_the_timer), calls, 100);
  EXPECT_SAYS(timers[0].text(), "does not hold: deadlock: ");
  EXPECT_TRUE(timers[1].holds() && timers[2].holds() && timers[3].holds());
  EXPECT_SAYS(timers[1].text(), "holds: 100 plays, ");
}

}  // namespace
}  // namespace ghostrank
