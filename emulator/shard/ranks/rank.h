// The state of one ghost rank: a cursor per stream over a shared Program, and its collectives in
// flight. Small by design, because thousands live in one process.
//
// Units: emulated picoseconds. Threading: owned by one shard.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <queue>
#include <vector>

#include "emulator/network/port.h"
#include "emulator/shard/events/event.h"
#include "emulator/shard/ranks/early_messages.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"
#include "emulator/verify/rank_data.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// How messages from one rank of a group to another go. Found once, used for many messages.
struct Route {
  // Within the node; within the process; through the fabric; within the process over links, as
  // packets, and between NICs whose rates change, with or without links; within the node, over a
  // link between the two GPUs; into a slice of the cluster or out of it.
  enum class Hop : std::uint8_t {
    node,
    process,
    fabric,
    links,
    packets,
    changing,
    gpu_link,
    crossing
  };
  GroupRank peer = kNoRank;  // the receiver; kNoRank: no route was found yet
  Hop hop = Hop::node;
  std::uint8_t comes_in = 0;  // NIC at the receiver, as Header::nic
  std::uint16_t number = 0;   // of its actor's next message, to any peer
  WorldRank target;           // the receiver's
  std::uint32_t rank = 0;     // receiver's local index at its shard
  std::int32_t shard = 0;
  // Flow of the fabric, -1: the plan has none; over links: the path; as packets: the connection;
  // between GPUs: the link; out of a slice: the connection, once known.
  std::int32_t flow = -1;
  NicPair nics;
  Flight* flight = nullptr;  // the peer's flight of this collective, once seen there
  LedgerCell sent;           // messages that the ledger does not count yet
};

// Messages that one connection (actor to peer) may still send.
struct CreditLine {
  GroupRank peer = kNoRank;
  std::uint32_t left = 0;
};

// A message that waits for its receiver to post the receive.
struct WaitingSend {
  GroupRank peer = kNoRank;
  bool permitted = false;  // now only a full fabric holds it
  Block slice;
  Moment ready;
};

// Flow control of an actor whose schedule has credits or needs permissions. With permissions, a
// line counts those that came before their send.
struct Credits {
  std::vector<CreditLine> lines;
  Route back;                        // of credits or permissions to the sender
  bool sent = false;                 // the current step's sends are done or in `waiting`
  int posted = 0;                    // receives of all steps before this one are permitted
  std::vector<WaitingSend> waiting;  // in the order of their steps
};

// One actor of one collective in flight: its position in its schedule. Two cache lines; the second
// is for sending.
struct ActorState {
  const Step* step = nullptr;  // the current one
  Moment ready;                // when all steps before this one were done
  EarlyList early;             // messages that arrived for a later step
  int k = 0, steps = 0;
  std::uint32_t slice = 0;
  std::uint16_t channel = 0;
  std::uint16_t unposted : 14 = 0;  // messages that a full ring or fabric has not taken
  bool held : 1 = false;            // stands still until `unposted` is 0
  // Waits for a step of another actor, or for its turn on the channel; until then it awaits nothing
  // from peers.
  bool waits : 1 = false;
  std::uint8_t awaiting = 0;  // bit i: slice not yet here from step->recv_from[i]
  std::uint8_t heard = 0;  // bit i: numbers[i] is the number of the last message from recv_from[i]
  std::array<std::uint16_t, kMaxPeers> numbers{};
  std::unique_ptr<Step> own;  // the current step, where the step table does not keep the schedule
  Route route;                // to the peer of the last send
  std::unique_ptr<Credits> credits;  // null: none are needed

  // Returns whether message `number` comes after the last one from step->recv_from[bit], and notes
  // it. False: another message has overtaken it.
  bool in_order(int bit, std::uint16_t number) {
    std::uint16_t& last = numbers[bit];
    if ((heard >> bit & 1) && static_cast<std::int16_t>(number - last) <= 0) [[unlikely]]
      return false;
    heard = static_cast<std::uint8_t>(heard | 1u << bit);
    last = number;
    return true;
  }
};
static_assert(sizeof(ActorState) == 128);

// A collective, send or recv in flight at one rank. The fields that every message reads come first.
struct alignas(64) Flight {
  const Schedule* schedule = nullptr;
  std::uint32_t rank = 0;                        // local index
  std::uint32_t group = kNil, sequence = 0;      // group: kNil while the flight is free
  GroupRank position = kNoRank, peer = kNoRank;  // peer: of a send or recv; else kNoRank
  int waiting = 0;                               // actors that wait for a step of another actor
  // Has one actor and needs no permissions: every message is for that actor, as soon as it is in.
  bool lone = false;
  // How many of `actors` it plays, from the first on; the others are left from an earlier flight.
  // 0: no message is for them.
  std::uint32_t playing = 0;
  std::vector<ActorState> actors;
  const Op* op = nullptr;
  std::shared_ptr<const Schedule> transfer;  // of a send or recv: its schedule
  std::uint32_t at = 0;                      // position of `op` in its stream
  int actors_left = 0;
  std::uint16_t row = 0;
  std::uint8_t stream = 0, slot = 0;
  // A call that plays no messages: inside a node as one delay, or between nodes as a flow.
  enum class Whole : std::uint8_t { no, in_node, fluid };
  Whole whole = Whole::no;
  bool by_agents = false;
  bool kept = false;  // its steps lie in the schedule's StepTable
  // In its rank's FlightList; `next` also in the list of free flights.
  Flight *next = nullptr, *before = nullptr;
  // Next member of the same call, if it is whole.
  Flight* next_member = nullptr;
  Moment start, end;
  std::unique_ptr<RankData> data;  // verify mode

  std::uint32_t index_of(const ActorState& a) const {
    return static_cast<std::uint32_t>(&a - actors.data());
  }

  // Returns whether a message is for this flight.
  bool expects(const Event& e) const {
    return sequence == e.sequence && group == e.group && rank == e.rank &&
           (peer == kNoRank || peer == e.source);
  }
};

// The flights of a rank, in the order in which they began. A rank may have many, and those of
// agents may end in any order, so the list is doubly linked. The `before` of the first flight is
// the last one.
class FlightList {
 public:
  bool empty() const { return first_ == nullptr; }
  void append(Flight* f) {
    f->next = nullptr;
    if (first_ == nullptr) {
      first_ = f->before = f;
      return;
    }
    f->before = first_->before;
    f->before->next = f;
    first_->before = f;
  }
  void remove(const Flight* f) {
    if (f == first_)
      first_ = f->next;
    else
      f->before->next = f->next;
    if (f->next != nullptr)
      f->next->before = f->before;
    else if (first_ != nullptr)
      first_->before = f->before;
  }
  // From the last flight to the first; null: there is none.
  Flight* last() const { return first_ ? first_->before : nullptr; }
  Flight* before(const Flight& f) const { return &f == first_ ? nullptr : f.before; }
  // Returns the flight that a message is for; null: none.
  Flight* find(const Event& e) const {
    for (Flight* f = first_; f != nullptr; f = f->next) {
      if (f->expects(e)) return f;
    }
    return nullptr;
  }

  struct Iterator {
    Flight* at;
    Flight* operator*() const { return at; }
    Iterator& operator++() {
      at = at->next;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() const { return {first_}; }
  Iterator end() const { return {nullptr}; }

 private:
  Flight* first_ = nullptr;
};

// Why a stream came to its present time no earlier: going back from there, computes, which took
// computed() together, then an op of kind(). A wait that blocked goes back on the stream that it
// waited for. Kind compute: nothing but computes.
class PathEnd {
 public:
  PathEnd() = default;
  explicit PathEnd(Op::Kind kind) : packed_(static_cast<Picoseconds>(kind)) {}

  Op::Kind kind() const { return static_cast<Op::Kind>(packed_ & (kKinds - 1)); }
  Picoseconds computed() const { return packed_ / kKinds; }  // at most 13 days; more counts as so
  void add(Picoseconds compute) { packed_ += std::min(compute, kMost - computed()) * kKinds; }

 private:
  static constexpr Picoseconds kKinds = 8;
  static constexpr Picoseconds kMost = std::numeric_limits<Picoseconds>::max() / kKinds;

  Picoseconds packed_ = static_cast<Picoseconds>(Op::Kind::compute);  // kKinds * computed() + kind
};

struct alignas(64) StreamState {  // one cache line
  // busy: calls are in flight; waiting: for a record; delayed: goes on when the clock reaches
  // `now`.
  enum class Phase : std::uint8_t { ready, busy, waiting, delayed, ended };
  std::uint32_t pc = 0;
  std::uint32_t event = 0;  // that it waits for: index into RankState::events
  Phase phase = Phase::ready;
  std::uint8_t at_once = 1;  // most collectives in flight together
  bool behind = false;       // still plays the iteration before the rank's
  PathEnd cause;             // of `now`
  // Bit i: a call in flight has slot i. With one worker only the calls of a launch have slots.
  std::uint64_t busy_slots = 0;
  Moment now;
  Moment ended;  // with slots: end of the call that ended last
};
static_assert(sizeof(StreamState) == 64);

// The records of an event that no wait has taken yet. A wait takes the oldest. Most events have at
// most one, which needs no memory of its own.
class alignas(32) EventState {
 public:
  struct Record {
    PathEnd cause;  // of `when`
    Moment when;
  };

  bool fired() const { return first_.when.at != kNever; }
  // Takes the parts of a record: a copy of one that was just put together would stall.
  void record(const PathEnd& cause, const Moment& when) {
    if (fired()) [[unlikely]]
      return record_ahead({cause, when});
    first_.cause = cause;
    first_.when = when;
  }
  Record take() {
    const Record taken = first_;
    first_.when.at = kNever;
    if (ahead_) [[unlikely]]
      take_ahead();
    return taken;
  }

 private:
  static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::min();

  void record_ahead(const Record& record) {
    if (!ahead_) ahead_ = std::make_unique<std::queue<Record>>();
    ahead_->push(record);
  }
  void take_ahead() {
    if (ahead_->empty()) return;
    first_ = ahead_->front();
    ahead_->pop();
  }

  Record first_{.when = {.at = kNever}};       // the oldest; at kNever: there is none
  std::unique_ptr<std::queue<Record>> ahead_;  // behind the oldest; null: there never were any
};
static_assert(sizeof(EventState) == 32);

// State of a rank whose streams may outlive an iteration; see carried.h.
struct CarriedOver {
  const Program* before = nullptr;  // of the iteration before the rank's
  std::uint32_t first = 0;          // first iteration of the segment
  std::uint32_t behind = 0;         // streams that still play the iteration before
  Moment began;                     // start of the rank's iteration
  // When the last stream that was behind began the rank's iteration, and why no earlier.
  EventState::Record caught_up;
};

// Counts sends or receives between this rank and one peer of a group.
struct PairCounter {
  std::uint32_t group = 0;
  GroupRank peer = kNoRank;
  bool receives = false;
  bool asked = false;  // `lone` is known
  std::uint32_t count = 0;
  std::uint32_t ends = kNil;            // in FluidCalls; kNil: it has had no transfers that flow
  struct TransferEnds* lone = nullptr;  // null: not between lone ports of a node
};

struct alignas(64) RankState {
  WorldParty party;         // a helper's state has this and its NVLink only
  std::uint32_t local = 0;  // index among the parties of its shard
  const Role* role = nullptr;
  const Program* program = nullptr;
  std::uint32_t iteration = 0, stop_at = 0;
  std::uint32_t streams_left = 0;
  bool traced = false;
  std::vector<StreamState> streams;
  std::vector<EventState> events;
  std::vector<PairCounter> pair_sequence;
  FlightList flights;
  EarlyList early;                       // messages for collectives that this rank has not started
  std::unique_ptr<CarriedOver> carried;  // null: no stream of its programs outlives an iteration
  Port nvlink;
  Picoseconds began = 0;                             // start of the current iteration
  Picoseconds compute = 0, exposed = 0, bubble = 0;  // of the current iteration

  WorldRank id() const { return WorldRank(party.value()); }
};

}  // namespace ghostrank
