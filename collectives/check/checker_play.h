// The symbolic play of checker.h: its state, and the functions that checker.cpp and
// checker_step.cpp share. Internal to the checker.
//
// The checker plays all actors in one thread. An actor runs until it waits for a message, a credit,
// a permission or a step of another actor; the actor that provides it puts the waiting one back on
// the list of runnable actors. When the list is empty, either all actors have ended or the schedule
// is deadlocked.
//
// A connection's messages are consumed in the order in which they were sent, and every actor waits
// for one thing at a time. Therefore the order in which the checker runs actors does not change
// which data arrives where; it could matter only for elements that two actors of a rank share. If
// there are such elements, the checker plays the schedule again with vector clocks, and messages or
// dependencies must order every such pair of accesses.
//
// Threading: one owner.
#pragma once

#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/check/accesses.h"
#include "collectives/check/checker.h"
#include "collectives/check/contract.h"
#include "collectives/check/contributions.h"
#include "collectives/check/str.h"

namespace ghostrank::checking {

using Clock = std::vector<std::uint32_t>;  // latest known time of every actor

struct Failure {
  std::string text;
  CheckReport::Where at;
};
[[noreturn]] inline void fail(std::string text, CheckReport::Where at = {}) {
  throw Failure{std::move(text), at};
}

struct Message {
  std::uint64_t count = 0;
  std::vector<Value> values;
  Clock clock;      // the sender's clock; only if the play uses clocks
  int round = 0;    // in which the message arrives
  int sent_in = 0;  // step in which the sender sent it
};

struct Connection {
  std::list<Message> queue;     // sent, not yet consumed
  std::uint64_t permitted = 0;  // posted receives for which no message has been sent yet
  int sender = -1;              // the one actor that sends on it; -1: none yet
  int waiting_receiver = -1, waiting_sender = -1;
};

// A step that other actors depend on.
struct Ended {
  bool done = false;
  Clock clock;  // of the actor, at the end of the step
  int received_until = 0;
  std::vector<int> waiting;  // waiting actors
};

struct ActorState {
  GroupRank rank = 0;
  int index = 0;  // within the rank
  Actor actor;
  int k = 0, posted = 0;  // posted: receives of the steps before this one are posted
  Step step;
  bool begun = false;  // the step that this one depends on, if any, has ended
  std::uint32_t slice = 0;
  int peer = 0;
  bool sending = false;
  std::vector<Block> recv_pieces, send_pieces;  // of a scattered step
  std::vector<Local> locals;
  int received_until = 0, sent_until = 0;  // rounds
  Clock clock;
  std::map<int, Ended> ended;  // by step: steps that other actors depend on
};

struct RankState {
  std::vector<Value> work, input, scratch;
  Sharing sharing{0};       // used without clocks
  AccessOrder order{0, 0};  // used with clocks
  int first_actor = 0, actors = 0;
};

class Play {
 public:
  Play(const Schedule& schedule, CheckOptions options, bool clocks)
      : schedule_(schedule),
        c_(schedule.collective()),
        options_(options),
        clocks_(clocks),
        contract_(c_, schedule.out_of_place(), contributions_) {}

  // Throws Failure.
  CheckReport run();
  bool shares_elements() const { return shares_elements_; }

 private:
  // checker.cpp
  void set_up();
  void set_up_rank(GroupRank r);
  void note_dependencies();
  void verify_result() const;
  void verify_barrier() const;
  [[noreturn]] void report_deadlock() const;
  [[noreturn]] static void fail_at(const ActorState& actor, const std::string& what);
  static std::string where(const ActorState& actor);

  // checker_step.cpp
  void load_step(ActorState& actor) const;
  void load_blocks(ActorState& actor, Way way) const;
  void load_locals(ActorState& actor) const;
  void check_block(const ActorState& actor, const Block& block, const char* what) const;
  void check_peers(const ActorState& actor, const Peers& peers) const;
  void advance(int a);
  bool begin(int a);
  void end_step(int a);
  bool receive(int a);
  void post_receives(int a);
  bool send(int a);
  void take(ActorState& actor, const Message& message, const Block& slice);
  void combine(const ActorState& actor, const Value* arrived, const Block& block, Combine how);
  void do_locals(const ActorState& actor);
  std::vector<Value> content(const ActorState& actor, const Block& block);
  void touch(const ActorState& actor, const Block& touched, bool write);
  std::vector<Value>& buffer(const ActorState& actor, Buffer which);
  Connection& connection(int channel, GroupRank source, GroupRank destination);

  const Schedule& schedule_;
  const Collective& c_;
  CheckOptions options_;
  bool clocks_;
  Contributions contributions_;
  Contract contract_;
  std::vector<RankState> ranks_;
  std::vector<ActorState> actors_;
  std::unordered_map<std::uint64_t, Connection> connections_;
  std::map<std::pair<GroupRank, GroupRank>, PairBytes> pairs_;
  std::vector<int> runnable_;
  bool shares_elements_ = false;
  CheckReport report_;
};

}  // namespace ghostrank::checking
