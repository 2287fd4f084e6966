// The state of one ghost rank: a cursor per stream over a shared Program, and the collectives it
// has in flight. Small by design: thousands live in one process.
//
// Threading: owned by one shard.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/network/port.h"
#include "emulator/shard/early_messages.h"
#include "emulator/shard/event.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"
#include "emulator/verify/rank_data.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// How messages from one rank of a group to another go; found out once, used for many.
struct Route {
  // Within the node, the process; beyond it; within it, over links of the network.
  enum class Hop : std::uint8_t { node, process, fabric, links };
  Rank peer = kNoRank;  // to; position in the group, kNoRank: nothing is known yet
  Hop hop = Hop::node;
  std::uint8_t comes_in = 0;  // by which NIC, as Header::nic
  std::uint16_t number = 0;   // of the next message of its actor, to whatever peer
  std::int32_t target = 0;    // global rank
  std::uint32_t rank = 0;     // local index at its shard
  std::int32_t shard = 0;
  std::int32_t flow = -1;  // of the fabric; -1: none was planned. Over links: the way
  NicPair nics;
  Flight* flight = nullptr;  // the peer's of this collective, once it was seen there
  LedgerCell sent;           // and not in the ledger yet
};

// What one connection (actor to peer) still may send.
struct CreditLine {
  Rank peer = kNoRank;
  std::uint32_t left = 0;
};

// A message that leaves when its receiver has posted the receive.
struct WaitingSend {
  Rank peer = kNoRank;
  bool permitted = false;  // and held only by a full fabric
  Block slice;
  Moment ready;
};

// Of an actor whose schedule has credits or needs permissions; of these a line has those that came
// before their send.
struct Credits {
  std::vector<CreditLine> lines;
  Route back;                        // by which they return
  bool sent = false;                 // what the step has to
  int posted = 0;                    // receives of the steps before this one were permitted
  std::vector<WaitingSend> waiting;  // in the order of their steps
};

// One actor of one collective in flight: where it stands in its schedule. Two cache lines, the
// second for what sends.
struct ActorState {
  const Step* step = nullptr;  // the current one
  Moment ready;                // when everything up to here was done
  EarlyList early;             // arrived for a later step
  int k = 0, steps = 0;
  std::uint32_t slice = 0;
  std::uint16_t channel = 0;
  std::uint16_t unposted : 14 = 0;  // messages that a full ring or fabric has not taken
  bool held : 1 = false;            // stands still until `unposted` is 0
  bool waits : 1 = false;  // for a step of another actor; nothing is awaited from peers before that
  std::uint8_t awaiting = 0;  // bit i: slice not yet here from step->recv_from[i]
  std::uint8_t heard = 0;     // bit i: numbers[i] is of the last message from there
  std::array<std::uint16_t, kMaxPeers> numbers{};
  std::unique_ptr<Step> own;         // the current one of a schedule whose steps are not kept
  Route route;                       // to the peer last sent to
  std::unique_ptr<Credits> credits;  // null: none are needed

  // Whether the message comes after the last one from step->recv_from[bit], as it was sent. False:
  // something has overtaken it.
  bool in_order(int bit, std::uint16_t number) {
    std::uint16_t& last = numbers[static_cast<std::size_t>(bit)];
    if ((heard >> bit & 1) && static_cast<std::int16_t>(number - last) <= 0) [[unlikely]]
      return false;
    heard = static_cast<std::uint8_t>(heard | 1u << bit);
    last = number;
    return true;
  }
};
static_assert(sizeof(ActorState) == 128);

// A collective in flight at one rank. What every message looks at comes first.
struct Flight {
  const Schedule* schedule = nullptr;
  std::uint32_t rank = 0;                    // local index
  std::uint32_t group = kNil, sequence = 0;  // group: kNil while it is not in use
  Rank position = kNoRank, peer = kNoRank;   // peer: of a send or recv, else kNoRank
  int waiting = 0;                           // actors that wait for others
  bool lone = false;  // has one actor, for whom everything is at once: without permissions
  std::vector<ActorState> actors;
  const Op* op = nullptr;
  std::unique_ptr<Schedule> transfer;  // owns the schedule of a send or recv
  int actors_left = 0;
  std::uint16_t row = 0;
  std::uint8_t stream = 0, lane = 0;
  bool inside_node = false;
  bool by_agents = false;
  bool kept = false;              // its steps are the schedule's, in a table
  Flight* next = nullptr;         // of its rank's, or of those not in use
  Flight* next_member = nullptr;  // of a call inside a node, of those that wait for the others
  Moment start, end;
  std::unique_ptr<RankData> data;  // verify mode

  std::uint32_t index_of(const ActorState& a) const {
    return static_cast<std::uint32_t>(&a - actors.data());
  }

  // Whether a message is one of this collective, at this rank.
  bool expects(const Event& e) const {
    return sequence == e.sequence && group == e.group && rank == e.rank &&
           (peer == kNoRank || peer == e.source);
  }
};

// Those of a rank, in the order in which they began.
class FlightList {
 public:
  bool empty() const { return first_ == nullptr; }
  void append(Flight* f) {
    f->next = nullptr;
    *place_of(nullptr) = f;
  }
  void remove(const Flight* f) { *place_of(f) = f->next; }
  // Which of them a message is for; null: none.
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
  Flight** place_of(const Flight* f) {
    Flight** place = &first_;
    while (*place != f) place = &(*place)->next;
    return place;
  }

  Flight* first_ = nullptr;
};

struct StreamState {
  enum class Phase : std::uint8_t { ready, busy, waiting, ended };
  std::uint32_t pc = 0;
  std::uint32_t event = 0;  // waited for: index into RankState::events
  Phase phase = Phase::ready;
  Op::Kind last = Op::Kind::compute;  // of the op that ended last
  std::uint8_t at_once = 1;           // collectives that may be in flight together
  std::uint8_t lanes = 0;             // bit i: one in flight; not used where at_once is 1
  bool behind = false;                // plays the iteration before the rank's
  Moment now;
  Moment ended;  // with lanes: of the last collective
};

struct EventState {
  bool fired = false;
  Op::Kind cause = Op::Kind::compute;
  Moment when;
};

// Of a rank whose streams may outlive an iteration; see carried.h.
struct CarriedOver {
  const Program* before = nullptr;  // of the iteration before the rank's
  std::uint32_t first = 0;          // iteration of the segment
  std::uint32_t behind = 0;         // streams that play the iteration before
  Moment began;                     // the rank's iteration
  Moment caught_up;                 // when the last of those that were behind began it
};

struct PairCounter {  // sends or receives between this rank and one peer of a group
  std::uint32_t group = 0;
  Rank peer = kNoRank;
  bool receives = false;
  std::uint32_t count = 0;
};

struct RankState {
  Rank id = 0;
  std::uint32_t local = 0;  // index among the ranks of its shard
  std::int32_t nic = 0;     // its own, of all of the cluster
  const Role* role = nullptr;
  const Program* program = nullptr;
  std::uint32_t iteration = 0, stop_at = 0;
  std::uint32_t streams_left = 0;
  bool traced = false;
  std::vector<StreamState> streams;
  std::vector<EventState> events;
  std::vector<PairCounter> pair_sequence;
  FlightList flights;
  EarlyList early;                       // for collectives this rank has not started
  std::unique_ptr<CarriedOver> carried;  // null: its programs carry nothing over
  Port nvlink;
  Picoseconds began = 0;                             // the current iteration
  Picoseconds compute = 0, exposed = 0, bubble = 0;  // of the current iteration
};

}  // namespace ghostrank
