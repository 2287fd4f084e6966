// The checker plays all actors in one thread. An actor runs until it waits for a message or for a
// credit; whoever provides that puts it back on the list. When the list is empty, either all actors
// have ended or the schedule is deadlocked.
//
// Messages of a connection are consumed in the order in which they were sent and every actor waits
// for one thing at a time, so what arrives where does not depend on the order in which actors are
// run; only elements that two actors of a rank share could. When there are such elements, the
// schedule is played again with vector clocks, and every such pair of accesses must be ordered by
// messages.
#include "collectives/checker.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "collectives/accesses.h"
#include "collectives/contract.h"
#include "collectives/contributions.h"

namespace ghostrank {
namespace {

using Clock = std::vector<std::uint32_t>;  // by actor

struct Failure {
  std::string text;
};
[[noreturn]] void fail(std::string text) { throw Failure{std::move(text)}; }
std::string str(std::uint64_t n) { return std::to_string(n); }
std::string str(int n) { return std::to_string(n); }

struct Message {
  std::uint64_t count = 0;
  std::vector<Value> values;
  Clock clock;      // what the sender had heard of; only with clocks
  int round = 0;    // in which it arrives
  int sent_in = 0;  // step
};

struct Connection {
  std::deque<Message> queue;  // sent, not yet consumed
  int sender = -1;            // the actor that uses it
  int waiting_receiver = -1, waiting_sender = -1;
};

struct ActorState {
  Rank rank = 0;
  int index = 0;  // within the rank
  Actor actor;
  int k = 0;
  Step step;
  std::uint32_t slice = 0;
  int peer = 0;
  bool sending = false;
  std::vector<Block> recv_pieces, send_pieces;  // of a scattered step
  int received_until = 0, sent_until = 0;       // rounds
  Clock clock;
};

struct RankState {
  std::vector<Value> work, input;
  Sharing sharing{0};       // without clocks
  AccessOrder order{0, 0};  // with clocks
  int first_actor = 0, actors = 0;
};

class Play {
 public:
  Play(const Schedule& schedule, CheckOptions options, bool clocks)
      : schedule_(schedule),
        c_(schedule.collective()),
        options_(options),
        clocks_(clocks),
        contract_(c_, contributions_) {}

  // Throws Failure.
  CheckReport run();
  bool shares_elements() const { return shares_elements_; }

 private:
  void set_up();
  void advance(int a);
  void load_step(ActorState& actor) const;
  bool receive(int a);
  bool send(int a);
  void take(ActorState& actor, const Message& message, const Block& slice);
  void combine(const ActorState& actor, const Value* arrived, const Block& block);
  std::vector<Value> content(const ActorState& actor, const Block& block);
  void touch(const ActorState& actor, const Block& block, bool write);
  void verify_result() const;
  void verify_barrier() const;
  [[noreturn]] void report_deadlock() const;
  void check_block(const ActorState& actor, const Block& block, const char* what) const;
  void load_blocks(ActorState& actor, Way way) const;
  void check_peers(const ActorState& actor, const Peers& peers) const;
  Connection& connection(int channel, Rank source, Rank destination);
  std::string where(const ActorState& actor) const;

  const Schedule& schedule_;
  const Collective& c_;
  CheckOptions options_;
  bool clocks_;
  Contributions contributions_;
  Contract contract_;
  std::vector<RankState> ranks_;
  std::vector<ActorState> actors_;
  std::unordered_map<std::uint64_t, Connection> connections_;
  std::map<std::pair<Rank, Rank>, PairBytes> pairs_;
  std::vector<int> runnable_;
  bool shares_elements_ = false;
  CheckReport report_;
};

std::string Play::where(const ActorState& actor) const {
  return "rank " + str(actor.rank) + " actor " + str(actor.index) + " step " + str(actor.k);
}

Connection& Play::connection(int channel, Rank source, Rank destination) {
  const auto key = (static_cast<std::uint64_t>(channel) << 48) |
                   (static_cast<std::uint64_t>(source) << 24) |
                   static_cast<std::uint64_t>(destination);
  return connections_[key];
}

void Play::set_up() {
  if (c_.size >= 1 << 24) fail("too many ranks to check");
  for (Rank r = 0; r < c_.size; ++r) {
    const std::uint64_t work = work_elements(c_, r), input = input_elements(c_, r);
    if (std::max(work, input) > std::numeric_limits<std::uint32_t>::max())
      fail("too many elements to check");
    RankState& rank = ranks_.emplace_back();
    for (std::uint64_t e = 0; e < work; ++e) rank.work.push_back(contract_.initial_work(r, e));
    for (std::uint64_t e = 0; e < input; ++e) rank.input.push_back(contract_.initial_input(r, e));
    rank.first_actor = static_cast<int>(actors_.size());
    rank.actors = schedule_.actors(r);
    for (int a = 0; a < rank.actors; ++a) {
      ActorState& actor = actors_.emplace_back();
      actor.rank = r;
      actor.index = a;
      actor.actor = schedule_.actor(r, a);
      if (actor.actor.channel < 0 || actor.actor.channel >= 1 << 16)
        fail(where(actor) + ": channel " + str(actor.actor.channel) + " is out of range");
    }
    if (clocks_)
      rank.order = AccessOrder(work, rank.actors);
    else
      rank.sharing = Sharing(work);
  }
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    if (clocks_) {
      actors_[a].clock.assign(actors_.size(), 0);
      actors_[a].clock[a] = 1;
    }
    runnable_.push_back(static_cast<int>(a));
  }
}

CheckReport Play::run() {
  set_up();
  for (ActorState& actor : actors_)
    if (actor.actor.steps > 0) load_step(actor);
  while (!runnable_.empty()) {
    const int a = runnable_.back();
    runnable_.pop_back();
    advance(a);
  }
  for (const ActorState& actor : actors_)
    if (actor.k < actor.actor.steps) report_deadlock();
  for (const auto& [key, link] : connections_)
    if (!link.queue.empty())
      fail(str(link.queue.size()) + " message(s) left over on channel " + str(key >> 48) +
           " from rank " + str((key >> 24) & 0xffffff) + " to rank " + str(key & 0xffffff) +
           ", sent in step " + str(link.queue.front().sent_in));
  verify_result();
  for (const auto& [key, pair] : pairs_) report_.pairs.push_back(pair);
  report_.ok = true;
  return report_;
}

void Play::check_block(const ActorState& actor, const Block& block, const char* what) const {
  const RankState& rank = ranks_[static_cast<std::size_t>(actor.rank)];
  const std::uint64_t size = block.buffer == Buffer::work ? rank.work.size() : rank.input.size();
  if (block.offset > size || block.count > size - block.offset)
    fail(where(actor) + ": the block it " + what + ", [" + str(block.offset) + ", " +
         str(block.offset + block.count) + "), is outside the buffer of " + str(size) +
         " elements");
  const Step& step = actor.step;
  if (!step.scattered && step.slice_elements > 0 && step.slices * step.slice_elements < block.count)
    fail(where(actor) + ": " + str(std::uint64_t{step.slices}) + " slices of " +
         str(step.slice_elements) + " leave out part of a block of " + str(block.count));
}

void Play::check_peers(const ActorState& actor, const Peers& peers) const {
  for (const Rank peer : peers)
    if (peer < 0 || peer >= c_.size || peer == actor.rank)
      fail(where(actor) + ": rank " + str(peer) + " cannot be its peer");
  if (!peers.empty() && actor.step.slices == 0) fail(where(actor) + ": peers, but no slices");
}

void Play::load_step(ActorState& actor) const {
  actor.step = schedule_.step(actor.rank, actor.index, actor.k);
  actor.slice = 0;
  actor.peer = 0;
  actor.sending = false;
  check_peers(actor, actor.step.recv_from);
  check_peers(actor, actor.step.send_to);
  if (!actor.step.recv_from.empty()) load_blocks(actor, Way::recv);
  if (!actor.step.send_to.empty()) load_blocks(actor, Way::send);
}

// Checks where a message of the step comes from or goes to.
void Play::load_blocks(ActorState& actor, Way way) const {
  const Step& step = actor.step;
  const Block& whole = way == Way::recv ? step.recv : step.send;
  const auto check_one = [&](const Block& block) {
    check_block(actor, block, way == Way::recv ? "receives into" : "sends");
    if (way == Way::recv && block.buffer == Buffer::input)
      fail(where(actor) + ": writes its input buffer");
  };
  if (!step.scattered) return check_one(whole);
  std::vector<Block>& pieces = way == Way::recv ? actor.recv_pieces : actor.send_pieces;
  pieces.clear();
  schedule_.pieces(actor.rank, actor.index, actor.k, way, pieces);
  std::uint64_t count = 0;
  for (const Block& piece : pieces) {
    if (piece.buffer != Buffer::none) check_one(piece);
    count += piece.count;
  }
  if (count != whole.count || step.slices != 1)
    fail(where(actor) + ": pieces of " + str(count) + " elements in " +
         str(std::uint64_t{step.slices}) + " slices, for a message of " + str(whole.count));
}

// Runs an actor until it ends or waits.
void Play::advance(int a) {
  ActorState& actor = actors_[static_cast<std::size_t>(a)];
  while (actor.k < actor.actor.steps) {
    while (actor.slice < actor.step.slices) {
      if (!actor.sending && !receive(a)) return;
      if (!send(a)) return;
      ++actor.slice;
    }
    if (++actor.k < actor.actor.steps) load_step(actor);
  }
}

// The current slice from every peer. False: waits for a message.
bool Play::receive(int a) {
  ActorState& actor = actors_[static_cast<std::size_t>(a)];
  const int channel = actor.actor.channel;
  const Block slice = slice_of(actor.step.recv, actor.step, actor.slice);
  for (; actor.peer < actor.step.recv_from.size(); ++actor.peer) {
    const Rank source = actor.step.recv_from[actor.peer];
    if (schedule_.receiver(actor.rank, channel, source) != actor.index)
      fail(where(actor) + " receives from rank " + str(source) + " on channel " + str(channel) +
           ", but receiver() names actor " + str(schedule_.receiver(actor.rank, channel, source)));
    Connection& link = connection(channel, source, actor.rank);
    if (link.queue.empty()) {
      link.waiting_receiver = a;
      return false;
    }
    Message message = std::move(link.queue.front());
    link.queue.pop_front();
    if (link.waiting_sender >= 0) runnable_.push_back(std::exchange(link.waiting_sender, -1));
    if (message.count != slice.count)
      fail(where(actor) + " expects " + str(slice.count) + " elements from rank " + str(source) +
           ", which sent " + str(message.count) + " in its step " + str(message.sent_in));
    take(actor, message, slice);
  }
  actor.sending = true;
  actor.peer = 0;
  return true;
}

void Play::take(ActorState& actor, const Message& message, const Block& slice) {
  actor.received_until = std::max(message.round, actor.received_until + 1);
  report_.rounds = std::max(report_.rounds, actor.received_until);
  if (clocks_)
    for (std::size_t i = 0; i < actor.clock.size(); ++i)
      actor.clock[i] = std::max(actor.clock[i], message.clock[i]);
  const Value* arrived = message.values.data();
  if (!actor.step.scattered) return combine(actor, arrived, slice);
  for (const Block& piece : actor.recv_pieces) {
    if (piece.buffer != Buffer::none) combine(actor, arrived, piece);
    arrived += piece.count;
  }
}

void Play::combine(const ActorState& actor, const Value* arrived, const Block& block) {
  touch(actor, block, true);
  Value* work = ranks_[static_cast<std::size_t>(actor.rank)].work.data() + block.offset;
  if (actor.step.on_recv == Combine::copy) {
    std::copy(arrived, arrived + block.count, work);
    return;
  }
  std::pair<std::uint32_t, std::uint32_t> sum_of{0, 0};
  std::uint32_t sum = contributions_.sum(0, 0);
  for (std::uint64_t i = 0; i < block.count; ++i) {
    const Value &mine = work[i], &theirs = arrived[i];
    if (mine.set != 0 && theirs.set != 0 && mine.element != theirs.element)
      fail(where(actor) + " reduces unlike elements at " + str(block.offset + i) + ": " +
           contributions_.describe(mine) + " with " + contributions_.describe(theirs));
    if (mine.set != sum_of.first || theirs.set != sum_of.second) {  // rarely: blocks are uniform
      sum_of = {mine.set, theirs.set};
      sum = contributions_.sum(mine.set, theirs.set);
    }
    work[i] = {sum, std::max(mine.element, theirs.element)};
  }
}

// What a message holds, taken from the rank's buffers.
std::vector<Value> Play::content(const ActorState& actor, const Block& block) {
  const RankState& rank = ranks_[static_cast<std::size_t>(actor.rank)];
  std::vector<Value> values;
  const auto append = [&](const Block& part) {
    if (part.buffer == Buffer::none) return values.resize(values.size() + part.count);
    touch(actor, part, false);
    const auto& buffer = part.buffer == Buffer::work ? rank.work : rank.input;
    const Value* from = buffer.data() + part.offset;
    values.insert(values.end(), from, from + part.count);
  };
  if (!actor.step.scattered)
    append(block);
  else
    for (const Block& piece : actor.send_pieces) append(piece);
  return values;
}

// The current slice to every peer. False: waits for a credit.
bool Play::send(int a) {
  ActorState& actor = actors_[static_cast<std::size_t>(a)];
  const Block slice = slice_of(actor.step.send, actor.step, actor.slice);
  const std::uint32_t credits = schedule_.flow().credits;
  for (; actor.peer < actor.step.send_to.size(); ++actor.peer) {
    const Rank target = actor.step.send_to[actor.peer];
    Connection& link = connection(actor.actor.channel, actor.rank, target);
    if (link.sender != a && link.sender != -1)
      fail(where(actor) + " sends to rank " + str(target) + " on channel " +
           str(actor.actor.channel) + ", as actor " +
           str(actors_[static_cast<std::size_t>(link.sender)].index) + " does too");
    link.sender = a;
    if (credits > 0 && link.queue.size() >= credits) {
      link.waiting_sender = a;
      return false;
    }
    actor.sent_until = std::max(actor.sent_until, actor.received_until) + 1;
    report_.rounds = std::max(report_.rounds, actor.sent_until);
    link.queue.push_back(
        {slice.count, content(actor, slice), actor.clock, actor.sent_until, actor.k});
    if (clocks_) ++actor.clock[static_cast<std::size_t>(a)];
    const std::uint64_t bytes = message_bytes(schedule_.protocol(), slice.count, c_.element_bytes);
    ++report_.messages;
    report_.bytes += bytes;
    if (options_.pairs) {
      PairBytes& pair = pairs_[{actor.rank, target}];
      pair = {actor.rank, target, pair.messages + 1, pair.bytes + bytes};
    }
    if (link.waiting_receiver >= 0) runnable_.push_back(std::exchange(link.waiting_receiver, -1));
  }
  actor.sending = false;
  actor.peer = 0;
  return true;
}

// Whatever another actor of the rank did to these elements must have been before, by messages.
void Play::touch(const ActorState& actor, const Block& block, bool write) {
  if (block.buffer == Buffer::input) return;  // nobody writes it
  RankState& rank = ranks_[static_cast<std::size_t>(actor.rank)];
  if (!clocks_) {
    shares_elements_ |= rank.sharing.note(actor.index, block);
    return;
  }
  const auto conflict =
      rank.order.access(actor.index, block, write, actor.clock.data() + rank.first_actor);
  if (conflict)
    fail(where(actor) + (write ? " writes" : " reads") + " element " + str(conflict->element) +
         " while actor " + str(conflict->other) + " uses it: no message puts one before the other");
}

void Play::verify_result() const {
  for (Rank r = 0; r < c_.size; ++r) {
    const std::vector<Value>& work = ranks_[static_cast<std::size_t>(r)].work;
    for (std::uint64_t e = 0; e < work.size(); ++e) {
      const std::optional<Value> required = contract_.required(r, e);
      if (required && work[e] != *required)
        fail("rank " + str(r) + " ends with wrong content at " + str(e) + ": " +
             contributions_.describe(work[e]) + " instead of " +
             contributions_.describe(*required));
    }
  }
  if (c_.func == Func::barrier) verify_barrier();
}

void Play::verify_barrier() const {
  for (const RankState& rank : ranks_)
    for (const RankState& other : ranks_) {
      bool heard = false;
      for (int a = rank.first_actor; a < rank.first_actor + rank.actors; ++a)
        for (int b = other.first_actor; b < other.first_actor + other.actors; ++b)
          heard |= actors_[static_cast<std::size_t>(a)].clock[static_cast<std::size_t>(b)] > 0;
      if (!heard)
        fail("rank " + str(static_cast<int>(&rank - ranks_.data())) +
             " leaves the barrier without having heard of rank " +
             str(static_cast<int>(&other - ranks_.data())));
    }
}

void Play::report_deadlock() const {
  std::string text = "deadlock:";
  int listed = 0;
  for (const ActorState& actor : actors_) {
    if (actor.k >= actor.actor.steps) continue;
    if (++listed > 8) {
      text += " ...";
      break;
    }
    const Peers& peers = actor.sending ? actor.step.send_to : actor.step.recv_from;
    text += (listed > 1 ? "; " : " ") + where(actor) + " waits for " +
            (actor.sending ? "a credit from rank " : "a message from rank ") +
            str(peers[actor.peer]);
  }
  fail(text);
}

}  // namespace

CheckReport check(const Schedule& schedule, CheckOptions options) {
  try {
    const bool barrier = schedule.collective().func == Func::barrier;
    Play play(schedule, options, barrier);
    CheckReport report = play.run();
    if (play.shares_elements()) Play(schedule, {}, true).run();
    return report;
  } catch (const Failure& failure) {
    CheckReport report;
    report.error = failure.text;
    return report;
  }
}

}  // namespace ghostrank
