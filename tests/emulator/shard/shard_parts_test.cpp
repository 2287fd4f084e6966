// The parts of a shard (emulator/shard/), one by one.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/agents/pair_counts.h"
#include "emulator/shard/events/ready_queue.h"
#include "emulator/shard/events/tied_events.h"
#include "emulator/shard/flights.h"
#include "emulator/shard/measured/lost_turns.h"
#include "emulator/shard/measured/pacing.h"
#include "emulator/shard/measured/quiet_watch.h"
#include "emulator/shard/measured/spans.h"
#include "emulator/shard/on_the_way/helper_backlogs.h"
#include "emulator/shard/on_the_way/misfortune.h"
#include "emulator/shard/ranks/early_messages.h"
#include "emulator/shard/ranks/node_meetings.h"
#include "emulator/shard/shared/open_iterations.h"
#include "emulator/shard/shared/outboxes.h"

namespace ghostrank {
namespace {

Event event_from(GroupRank source, std::uint32_t sequence = 0) {
  Event e;
  e.source = source;
  e.sequence = sequence;
  return e;
}

// ---- LostTurns ----

TEST(LostTurns, AWaitBehindWhatWasDueLaterIsSlip) {
  LostTurns turns;
  turns.begin(2);
  const auto slip = [&](const Moment& came, Picoseconds in) {
    return turns.charged(Nic(1), came, {in, came.slip}).slip;
  };
  EXPECT_EQ(slip({100, 0}, 100), 0);
  EXPECT_EQ(slip({90, 0}, 150), 60) << "due before the one at 100, and behind it";
  EXPECT_EQ(slip({110, 0}, 200), 0) << "waits for one that was due first";
  EXPECT_EQ(slip({120, 15}, 250), 145) << "would have been first but for its lateness";
  EXPECT_EQ(slip({130, 20}, 300), 20) << "as late as the others, and still behind them";
  EXPECT_EQ(turns.charged(Nic(0), {50, 0}, {60, 0}).slip, 0) << "another NIC";
}

// ---- ReadyQueue ----

TEST(ReadyQueue, WhatIsSetFreeGoesBeforeWhoSetItFree) {
  ReadyQueue queue(2);
  Flight flight;
  queue.push_rank_again(1, 3);
  queue.push(Ready::What::step, flight, 0);
  queue.push(Ready::What::waiting, flight, 7);
  const Ready waiting = queue.pop(), step = queue.pop(), rank = queue.pop();
  EXPECT_EQ(waiting.what, Ready::What::waiting);
  EXPECT_EQ(waiting.index, 7u);
  EXPECT_EQ(waiting.flight, &flight);
  EXPECT_EQ(step.what, Ready::What::step);
  EXPECT_EQ(rank.what, Ready::What::rank);
  EXPECT_EQ(rank.index, 1u);
  EXPECT_EQ(rank.stream, 3);
  EXPECT_TRUE(rank.started);
  EXPECT_TRUE(queue.empty());
}

TEST(ReadyQueue, HasARankOnceAndGoesOnWhereItStood) {
  ReadyQueue queue(2);
  queue.push_rank_again(1, 3);
  queue.push_rank(1);  // an operation of its stream 3 has ended at once
  queue.push_rank(0);
  EXPECT_EQ(queue.pop().index, 0u);
  EXPECT_EQ(queue.pop().stream, 3);
  EXPECT_TRUE(queue.empty());
  queue.push_rank(1);  // the rank has left the queue and may come again
  const Ready again = queue.pop();
  EXPECT_EQ(again.stream, 0);
  EXPECT_FALSE(again.started);
}

// ---- Outboxes ----

// Keeps parcels, numbered by their events' sequences, for outboxes with limited room.
class OutboxesTest : public ::testing::Test {
 protected:
  OutboxesTest() { boxes_.resize(3); }

  void keep(int outbox, std::uint32_t number, Flight* sender = nullptr) {
    Parcel p;
    p.event.sequence = number;
    p.event.flight = sender;
    p.event.actor = number;
    boxes_.keep(outbox, std::move(p));
  }
  bool flush() {
    return boxes_.flush(
        [this](int outbox, const Parcel& parcel) {
          if (room_[outbox] == 0) return false;
          --room_[outbox];
          left_[outbox].push_back(parcel.event.sequence);
          return true;
        },
        [this](Flight* sender, std::uint32_t actor) {
          if (sender) gone_.push_back(actor);
          if (sender && more_ > 0) keep(more_outbox_, 100 + more_--);
        });
  }

  using Numbers = std::vector<std::uint32_t>;
  Outboxes boxes_;
  std::map<int, int> room_;
  std::map<int, Numbers> left_;
  Numbers gone_;
  std::uint32_t more_ = 0;  // parcels that a sender posts when one of its own has left
  int more_outbox_ = 0;
};

TEST_F(OutboxesTest, AnOutboxLeavesInOrderAndAFullOneHoldsUpNoOther) {
  for (std::uint32_t n = 0; n < 4; ++n) keep(0, n), keep(2, 10 + n);
  EXPECT_EQ(boxes_.kept(), 8u);
  room_ = {{0, 1}, {2, 4}};
  EXPECT_TRUE(flush());
  EXPECT_EQ(left_[0], Numbers({0}));
  EXPECT_EQ(left_[2], Numbers({10, 11, 12, 13}));
  EXPECT_TRUE(boxes_.empty(2));
  EXPECT_FALSE(boxes_.empty(0));
  EXPECT_FALSE(flush());
  room_[0] = 100;
  EXPECT_TRUE(flush());
  EXPECT_EQ(left_[0], Numbers({0, 1, 2, 3}));
  EXPECT_EQ(boxes_.kept(), 0u);
}

TEST_F(OutboxesTest, ASenderThatIsToldMayKeepMoreInThisOutboxOrAnother) {
  Flight sender;
  for (const int outbox : {0, 1}) {
    room_ = {{0, 2}, {1, 2}};
    left_.clear();
    more_ = 2;
    more_outbox_ = outbox;
    keep(0, 5, &sender);
    keep(0, 6, &sender);
    flush();
    while (flush()) {
    }
    const Numbers more = {102, 101};
    if (outbox == 0) {
      EXPECT_EQ(left_[0], Numbers({5, 6}));
      EXPECT_EQ(boxes_.kept(), 2u);
      room_[0] = 2;
      EXPECT_TRUE(flush());
      EXPECT_EQ(left_[0], Numbers({5, 6, 102, 101}));
    } else {
      EXPECT_EQ(left_[1], more);
    }
    EXPECT_EQ(boxes_.kept(), 0u);
  }
  EXPECT_EQ(gone_, Numbers({5, 6, 5, 6}));
}

TEST_F(OutboxesTest, ATurnThatSomebodyWaitsForHoldsUpNobodyElse) {
  boxes_.add_turn(1, true);
  EXPECT_FALSE(boxes_.has_turns(1));
  boxes_.add_turn(1, false);
  keep(1, 0);
  EXPECT_TRUE(boxes_.has_turns(1));
  EXPECT_FALSE(boxes_.has_turns(0));
  EXPECT_EQ(boxes_.load(1), 2u);
  EXPECT_EQ(boxes_.turns(), 2u);
  boxes_.end_turn(1, true);
  EXPECT_TRUE(boxes_.has_turns(1));
  boxes_.end_turn(1, false);
  EXPECT_FALSE(boxes_.has_turns(1));
  EXPECT_EQ(boxes_.turns(), 0u);
}

// ---- EarlyMessages ----

TEST(EarlyMessages, AreTakenOutInTheOrderInWhichTheyCame) {
  EarlyMessages early;
  EarlyList list, other;
  for (std::uint32_t n = 0; n < 6; ++n)
    early.push(n == 3 ? other : list, event_from(n % 2 ? 1 : 0, n));
  std::vector<std::uint32_t> taken;
  const auto take_of = [&](GroupRank source, std::size_t most) {
    taken.clear();
    early.take(
        list,
        [&](const Event& e) {
          if (e.source != source) return false;
          taken.push_back(e.sequence);
          return true;
        },
        [&] { return taken.size() == most; });
    return taken;
  };
  using Sequences = std::vector<std::uint32_t>;
  EXPECT_EQ(take_of(0, 2), Sequences({0, 2}));  // the head, and one in the middle
  EXPECT_EQ(take_of(1, 9), Sequences({1, 5}));  // the tail among them
  early.push(list, event_from(0, 6));           // behind the new tail
  EXPECT_EQ(take_of(0, 9), Sequences({4, 6}));
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(other.empty());
  early.push(list, event_from(1, 7));
  EXPECT_EQ(take_of(1, 9), Sequences({7}));
}

// Parcels move from a rank's list to its actors' lists while the list is traversed.
TEST(EarlyMessages, WhatIsTakenMayGoToAnotherList) {
  EarlyMessages early;
  EarlyList rank, actor;
  for (std::uint32_t n = 0; n < 200; ++n) early.push(rank, event_from(0, n));
  const auto adopt = [&](const Event& e) {
    early.push(actor, e);
    return true;
  };
  early.take(rank, adopt, [] { return false; });
  EXPECT_TRUE(rank.empty());
  std::uint32_t next = 0;
  const auto count = [&](const Event& e) { return e.sequence == next && ++next > 0; };
  early.take(actor, count, [] { return false; });
  EXPECT_EQ(next, 200u);
}

// ---- Flights ----

TEST(Flights, AreUsedAnewAndFoundByNoMessageMeanwhile) {
  Flights flights;
  Flight& a = flights.take();
  Flight& b = flights.take();
  EXPECT_NE(&a, &b);
  a.group = 0;
  Event e = event_from(0);
  EXPECT_TRUE(a.expects(e));
  flights.give_back(a);
  EXPECT_FALSE(a.expects(e));
  flights.give_back(b);
  EXPECT_EQ(&flights.take(), &b);
  EXPECT_EQ(&flights.take(), &a);
}

TEST(FlightList, FindsWhatAMessageIsForByItsCallAndOfAPairByItsPeer) {
  FlightList list;
  Flight of_pair, call;
  of_pair.group = call.group = 4;
  of_pair.peer = 2;
  of_pair.sequence = call.sequence = 9;
  list.append(&of_pair);
  list.append(&call);
  Event e = event_from(2, 9);
  e.group = 4;
  EXPECT_EQ(list.find(e), &of_pair);
  e.source = 1;
  EXPECT_EQ(list.find(e), &call);
  e.sequence = 8;
  EXPECT_EQ(list.find(e), nullptr);
}

// Calls of agents end in any order.
TEST(FlightList, KeepsTheOrderInWhichFlightsBeganWhicheverEnds) {
  std::mt19937 random(5);
  std::deque<Flight> flights(40);
  FlightList list;
  std::vector<Flight*> expected, free;
  for (Flight& f : flights) free.push_back(&f);
  for (int i = 0; i < 2000; ++i) {
    auto& from = free.empty() || (!expected.empty() && random() % 2) ? expected : free;
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(random() % from.size());
    Flight* const f = *at;
    from.erase(at);
    if (&from == &free) {
      list.append(f);
      expected.push_back(f);
    } else {
      list.remove(f);
      free.push_back(f);
    }
    std::vector<Flight*> seen;
    for (Flight* one : list) seen.push_back(one);
    ASSERT_EQ(seen, expected);
    ASSERT_EQ(list.empty(), expected.empty());
  }
}

// ---- NodeMeetings ----

class NodeMeetingsTest : public ::testing::Test {
 protected:
  const NodeMeetings::Meeting* come(std::uint32_t group, std::uint32_t sequence, Moment start) {
    Flight& f = flights_.emplace_back();
    f.group = group;
    f.sequence = sequence;
    f.start = start;
    return meetings_.come(f, 3);
  }
  NodeMeetings meetings_{2};
  std::deque<Flight> flights_;
};

TEST_F(NodeMeetingsTest, TheLastMemberOfACallMeetsTheOthers) {
  EXPECT_EQ(come(1, 0, {5, 0}), nullptr);
  EXPECT_EQ(come(0, 0, {900, 0}), nullptr);  // of another group
  EXPECT_EQ(come(1, 1, {800, 0}), nullptr);  // of the next call
  EXPECT_EQ(come(1, 0, {7, 2}), nullptr);
  EXPECT_EQ(come(1, 1, {1, 0}), nullptr);
  const NodeMeetings::Meeting* met = come(1, 0, {7, 1});
  ASSERT_NE(met, nullptr);
  EXPECT_EQ(met->last.at, 7);
  EXPECT_EQ(met->last.slip, 2);
  int members = 0;
  for (const Flight* f = met->first; f; f = f->next_member, ++members)
    EXPECT_TRUE(f->group == 1 && f->sequence == 0);
  EXPECT_EQ(members, 3);
  EXPECT_EQ(met->first, &flights_.back());
  met = come(1, 1, {2, 0});  // the other meetings are unchanged
  ASSERT_NE(met, nullptr);
  EXPECT_EQ(met->last.at, 800);
}

TEST_F(NodeMeetingsTest, NothingIsLeftOfASegmentThatWasStopped) {
  EXPECT_EQ(come(1, 0, {}), nullptr);
  EXPECT_EQ(come(1, 0, {}), nullptr);
  meetings_.clear();
  EXPECT_EQ(come(1, 0, {}), nullptr);
}

// ---- Pacing ----

TEST(Pacing, ErrorIsHowMuchLatenessGrowsWithinBusyPeriods) {
  Pacing pacing;
  pacing.begin(2);
  pacing.note(Nic(0), 0, 10, 1);
  pacing.note(Nic(0), 10, 10, 1);
  pacing.note(Nic(0), 20, 10, 3);
  pacing.note(Nic(1), 5, 10, 7);  // another NIC
  EXPECT_EQ(pacing.error(), 2);
  pacing.note(Nic(0), 31, 10, 9);  // new period: a pause costs no rate
  EXPECT_EQ(pacing.error(), 2);
  pacing.note(Nic(0), 41, 10, 8);
  EXPECT_EQ(pacing.error(), 1);
  EXPECT_EQ(pacing.paced(), 60);
  pacing.begin(2);
  EXPECT_EQ(pacing.error(), 0);
  EXPECT_EQ(pacing.paced(), 0);
}

// ---- QuietWatch ----

TEST(QuietWatch, AGapIsLongerThanTheThresholdAndComputingIsNone) {
  QuietWatch watch;
  watch.begin(100);
  watch.note_progress(100);
  EXPECT_TRUE(watch.gaps().empty());
  watch.note_progress(201);
  ASSERT_EQ(watch.gaps().size(), 1u);
  EXPECT_EQ(watch.gaps()[0].from, 100);
  EXPECT_EQ(watch.gaps()[0].to, 201);
  watch.note_rest(1000, 202);  // something computes until 1000
  watch.note_progress(1001);
  EXPECT_EQ(watch.gaps().size(), 1u);
  watch.note_end(1001);
  ASSERT_EQ(watch.gaps().size(), 2u);
  EXPECT_EQ(watch.gaps()[1].to, kEndless);
}

TEST(QuietWatch, TellsOnceThatItIsQuietAndOnceThatItIsNoMore) {
  QuietWatch watch;
  watch.begin(100);
  EXPECT_FALSE(watch.note_progress(10));
  EXPECT_FALSE(watch.note_rest(0, 110));
  EXPECT_EQ(watch.note_rest(0, 111), std::optional<Picoseconds>(10));
  EXPECT_FALSE(watch.note_rest(0, 500));
  EXPECT_TRUE(watch.note_progress(510));
  EXPECT_FALSE(watch.note_progress(511));
  EXPECT_FALSE(watch.note_rest(900, 800));
  EXPECT_EQ(watch.note_rest(900, 1001), std::optional<Picoseconds>(900));
  watch.begin(100);  // another segment: nothing is known of it yet
  EXPECT_FALSE(watch.note_progress(1));
  EXPECT_TRUE(watch.gaps().empty());
}

TEST(QuietWatch, LastsWhenAQuarterOfTheThresholdHasPassed) {
  QuietWatch watch;
  watch.begin(100);
  watch.note_progress(10);
  watch.note_rest(30, 20);  // a timer of an agent, which may be nothing
  EXPECT_FALSE(watch.lasts(35));
  EXPECT_TRUE(watch.lasts(36));
  watch.note_progress(36);
  EXPECT_FALSE(watch.lasts(37));
}

// ---- TiedEvents ----

TEST(TiedEvents, FallBySenderAndOfASenderAsTheyWereSent) {
  TiedEvents tied;
  const auto add = [&](int sender, std::uint32_t number, MessageKind kind = MessageKind::data) {
    Event e = event_from(sender, number);
    e.message = kind;
    tied.add(WorldParty(sender), e);
  };
  const auto order = [&] {
    std::vector<std::uint32_t> numbers;
    for (const TiedEvents::Tied& t : tied.in_order()) numbers.push_back(t.event.sequence);
    return numbers;
  };
  using Numbers = std::vector<std::uint32_t>;
  add(8, 0);
  add(3, 1);
  EXPECT_EQ(order(), Numbers({1, 0}));
  tied.clear();
  add(3, 0);
  add(3, 1);
  EXPECT_EQ(order(), Numbers({0, 1}));
  tied.clear();
  add(8, 0);
  add(3, 1, MessageKind::credit);
  add(8, 2);
  add(3, 3);
  add(kNoParty.value(), 4);  // the rank's own
  EXPECT_EQ(order(), Numbers({4, 3, 1, 0, 2}));
}

// ---- HelperBacklogs, PairCounts ----

TEST(HelperBacklogs, StopAtTheNextTimerOfAHelperThatIsAlone) {
  HelperBacklogs backlogs;
  backlogs.begin(10, {true, false});
  EXPECT_FALSE(backlogs.runs_ahead(9));  // a rank
  EXPECT_TRUE(backlogs.runs_ahead(10));
  EXPECT_FALSE(backlogs.runs_ahead(11));  // shares its node
  EXPECT_FALSE(backlogs.runs_ahead(12));
  const Picoseconds never = backlogs.next_timer(10);
  backlogs.armed(10, 70);
  backlogs.armed(10, 30);
  backlogs.armed(11, 5);
  EXPECT_EQ(backlogs.next_timer(10), 30);
  backlogs.fired(10);
  EXPECT_EQ(backlogs.next_timer(10), 70);
  backlogs.fired(10);
  backlogs.fired(11);
  EXPECT_EQ(backlogs.next_timer(10), never);
  backlogs.begin(10, {});
  EXPECT_FALSE(backlogs.runs_ahead(10));
}

// More pairs than there is room for: rows handed over and rows left are all of them together.
TEST(PairCounts, CountEveryNoteOnceHoweverManyPairsThereAre) {
  PairCounts counts;
  constexpr std::uint32_t kRows = 300;
  constexpr GroupParty kApart = 64;  // a block for each pair
  std::map<std::pair<std::uint32_t, GroupParty>, LedgerCell> sums;
  int handed_over = 0;
  const auto take_all = [&] {
    counts.take_all([&](std::uint32_t row, GroupParty receiver, const LedgerCell& count) {
      sums[{row, receiver}] += count;
    });
    ++handed_over;
  };
  for (std::uint32_t row = 0; row < kRows; ++row) ASSERT_EQ(counts.new_row(), row);
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t row = 0; row < kRows; ++row)
      for (GroupParty n = 0; n < 120; ++n)
        if (const std::uint64_t bytes = row + 1; !counts.add(row, n * kApart, bytes)) {
          take_all();
          ASSERT_TRUE(counts.add(row, n * kApart, bytes));
        }
  EXPECT_GE(handed_over, 2);
  take_all();
  ASSERT_EQ(sums.size(), kRows * 120);
  for (const auto& [pair, sum] : sums) {
    ASSERT_EQ(sum.messages, 2u);
    ASSERT_EQ(sum.bytes, 2u * (pair.first + 1));
  }
}

// ---- OpenIterations, Spans ----

TEST(OpenIterations, AreWholeWhenTheLastRankHasEndedThem) {
  OpenIterations open;
  open.begin(0, 5, 2, 2);
  const auto ended = [&](std::uint32_t iteration, Picoseconds at) {
    IterationSums one{.iteration = iteration, .ranks = 1, .end = {at, 0}, .earliest = at};
    one.compute.add(5'000'000 * kPicosPerSecond);  // two of them are more than Picoseconds hold
    return open.add(one);
  };
  EXPECT_EQ(ended(5, 30), nullptr);
  EXPECT_EQ(ended(6, 70), nullptr);  // the same rank is ahead
  const IterationSums* whole = ended(5, 20);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->iteration, 5u);
  EXPECT_EQ(whole->end.at, 30);
  EXPECT_EQ(whole->earliest, 20);
  EXPECT_EQ(whole->compute.seconds(), 10'000'000);
  EXPECT_NE(ended(6, 80), nullptr);
}

TEST(Spans, CountWhatThereIsNoRoomFor) {
  Spans spans(2);
  for (int i = 0; i < 5; ++i)
    if (Span* span = spans.add()) span->rank = WorldRank(i);
  EXPECT_EQ(spans.dropped(), 3u);
  const std::vector<Span> taken = spans.take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[1].rank, WorldRank(1));
  spans.begin();
  EXPECT_EQ(spans.dropped(), 0u);
  EXPECT_NE(spans.add(), nullptr);
}

// ---- Misfortune ----

// The packets of a slot in turn, as if each were lost until it is sent for the third time.
TEST(Misfortune, IsTheSameForEveryRunAndTakesTheSharesThatAreAsked) {
  const PacketSpec spec{.loss = 0.2, .duplicates = 0.1, .reordering = 0.3};
  constexpr int kSlots = 4, kPackets = 20'001, kTimes = 3;
  Misfortune one(spec, 1, kSlots), mixed(spec, 1, kSlots), other(spec, 2, kSlots);
  constexpr WorldParty kSender(7), kOther(6), kReceiver(9);
  constexpr Picoseconds kLatency = 1'000'000;
  PacketCounts counts, ignored;
  int differ = 0, late = 0, as_before = 0;
  std::array<Picoseconds, 2> before{};
  for (Misfortune* m : {&one, &mixed, &other}) m->begin(3);
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    const std::uint32_t number = i / kTimes;
    const Note packet{.index = number % kSlots, .words = std::as_bytes(std::span(&number, 1))};
    const auto copies = one.next(kSender, kReceiver, packet, kLatency, counts);
    // What others send, to others and in other slots changes nothing.
    mixed.next(kOther, kReceiver, packet, kLatency, ignored);
    mixed.next(kSender, kOther, packet, kLatency, ignored);
    mixed.next(kSender, kReceiver, {.index = kSlots + i % 3}, kLatency, ignored);
    ASSERT_EQ(mixed.next(kSender, kReceiver, packet, kLatency, ignored), copies);
    differ += other.next(kSender, kReceiver, packet, kLatency, ignored) != copies;
    as_before += i % kTimes > 0 && copies == before;
    before = copies;
    for (const Picoseconds copy : copies) {
      EXPECT_LT(copy, 8 * kLatency);
      late += copy > 0;
    }
  }
  EXPECT_GT(differ, kPackets / 4);
  EXPECT_LT(as_before, kPackets / 2);  // a packet that is sent again may have another fate
  const auto near = [](std::uint64_t count, double share) {
    EXPECT_NEAR(static_cast<double>(count) / kPackets, share, 0.01);
  };
  near(counts.lost_on_purpose, 0.2);
  near(counts.doubled_on_purpose, 0.1);
  near(counts.delayed_on_purpose, 0.3 * (0.8 + 0.1));
  EXPECT_EQ(static_cast<std::uint64_t>(late), counts.delayed_on_purpose);
}

// A sender with more packets under way than it is said to have: none of them is lost for ever.
TEST(Misfortune, HasAnotherFateForWhatItHasForgotten) {
  const PacketSpec spec{.loss = 0.5};
  Misfortune misfortune(spec, 1, 1);
  misfortune.begin(0);
  PacketCounts counts;
  std::array<int, 5> arrived{};
  for (int round = 0; round < 40; ++round)
    for (std::uint32_t index = 0; index < arrived.size(); ++index)
      arrived[index] += misfortune.next(WorldParty(0), WorldParty(1), {.index = index}, 1,
                                        counts)[0] != Misfortune::kLost;
  for (const int times : arrived) EXPECT_NEAR(times, 20, 15);
}

// Packets of one slot that say different things in turn, as those that a switch passes on for
// several workers: each is lost as often as asked, and none for ever.
TEST(Misfortune, CountsWhatIsSaidInTurnUnderOneIndex) {
  constexpr int kRounds = 64;
  for (const std::uint32_t things : {2u, 4u, 5u, 9u}) {
    PacketCounts counts;
    constexpr std::uint64_t kSeeds = 100;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const PacketSpec spec{.loss = 0.5};
      Misfortune misfortune(spec, seed, 1);
      misfortune.begin(0);
      std::vector<int> arrived(things);
      for (int round = 0; round < kRounds; ++round)
        for (std::uint32_t i = 0; i < things; ++i)
          arrived[i] += misfortune.next(WorldParty(0), WorldParty(1),
                                        {.index = 7, .words = std::as_bytes(std::span(&i, 1))}, 1,
                                        counts)[0] != Misfortune::kLost;
      for (const int times : arrived) EXPECT_NEAR(times, kRounds / 2, 24) << things << ' ' << seed;
    }
    EXPECT_NEAR(static_cast<double>(counts.lost_on_purpose) / (kSeeds * kRounds * things), 0.5,
                0.02);
  }
}

}  // namespace
}  // namespace ghostrank
