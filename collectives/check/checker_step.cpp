// How an actor of the symbolic play executes its steps, each checked before it is played. See
// checker_play.h.
//
// Threading: one owner.
#include <algorithm>

#include "collectives/check/checker_play.h"

namespace ghostrank::checking {

void Play::load_step(ActorState& actor) const {
  actor.step = schedule_.step(actor.rank, actor.index, actor.k);
  actor.slice = 0;
  actor.peer = 0;
  actor.sending = false;
  actor.begun = !actor.step.depends;
  check_peers(actor, actor.step.recv_from);
  check_peers(actor, actor.step.send_to);
  if (!actor.step.recv_from.empty()) load_blocks(actor, Way::recv);
  if (!actor.step.send_to.empty()) load_blocks(actor, Way::send);
  if (actor.step.local) load_locals(actor);
}

// Loads and checks the blocks that a message of the step goes to (Way::recv) or comes from
// (Way::send).
void Play::load_blocks(ActorState& actor, Way way) const {
  const Step& step = actor.step;
  const Block& whole = way == Way::recv ? step.recv : step.send;
  const auto check_one = [&](const Block& block) {
    check_block(actor, block, way == Way::recv ? "receives into" : "sends");
    if (way == Way::recv && block.buffer == Buffer::input)
      fail_at(actor, ": writes its input buffer");
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
    fail_at(actor, ": pieces of " + str(count) + " elements in " + str(std::uint64_t{step.slices}) +
                       " slices, for a message of " + str(whole.count));
}

void Play::load_locals(ActorState& actor) const {
  actor.locals.clear();
  schedule_.locals(actor.rank, actor.index, actor.k, actor.locals);
  if (actor.step.slices != 1) fail_at(actor, ": local work in a step of several slices");
  for (const auto& [from, to, how] : actor.locals) {
    check_block(actor, from, "copies or adds");
    check_block(actor, to, "copies or adds to");
    if (to.buffer == Buffer::input) fail_at(actor, ": writes its input buffer");
    const bool apart = from.buffer != to.buffer || from.offset + from.count <= to.offset ||
                       to.offset + to.count <= from.offset;
    if (from.count != to.count || (from.count > 0 && !apart))
      fail_at(actor, ": local work needs two blocks of one size that do not overlap");
  }
}

// Runs an actor until it ends or waits.
void Play::advance(int a) {
  ActorState& actor = actors_[a];
  while (actor.k < actor.actor.steps) {
    if (!actor.begun && !begin(a)) return;
    while (actor.slice < actor.step.slices) {
      if (!actor.sending) {
        if (!receive(a)) return;
        if (actor.step.local) do_locals(actor);
        post_receives(a);
      }
      if (!send(a)) return;
      ++actor.slice;
    }
    if (!actor.ended.empty()) end_step(a);
    if (++actor.k < actor.actor.steps) load_step(actor);
  }
}

// Starts the step if the step it depends on has ended; else returns false and waits for it.
bool Play::begin(int a) {
  ActorState& actor = actors_[a];
  const RankState& rank = ranks_[actor.rank];
  const StepOf on = schedule_.dependency(actor.rank, actor.index, actor.k);
  Ended& ended = actors_[rank.first_actor + on.actor].ended.at(on.step);
  if (!ended.done) {
    ended.waiting.push_back(a);
    return false;
  }
  actor.received_until = std::max(actor.received_until, ended.received_until);
  for (std::size_t i = 0; i < actor.clock.size(); ++i)
    actor.clock[i] = std::max(actor.clock[i], ended.clock[i]);
  return actor.begun = true;
}

void Play::end_step(int a) {
  ActorState& actor = actors_[a];
  const auto found = actor.ended.find(actor.k);
  if (found == actor.ended.end()) return;
  Ended& ended = found->second;
  ended.done = true;
  ended.clock = actor.clock;
  ended.received_until = actor.received_until;
  if (clocks_) ++actor.clock[a];  // later accesses are not covered
  runnable_.insert(runnable_.end(), ended.waiting.begin(), ended.waiting.end());
}

// Receives the current slice from every peer. Returns false if it must wait for a message.
bool Play::receive(int a) {
  ActorState& actor = actors_[a];
  const int channel = actor.actor.channel;
  const Block slice = slice_of(actor.step.recv, actor.step, actor.slice);
  for (; actor.peer < actor.step.recv_from.size(); ++actor.peer) {
    const GroupRank source = actor.step.recv_from[actor.peer];
    if (schedule_.receiver(actor.rank, channel, source) != actor.index)
      fail_at(actor, " receives from rank " + str(source) + " on channel " + str(channel) +
                         ", but receiver() names actor " +
                         str(schedule_.receiver(actor.rank, channel, source)));
    Connection& link = connection(channel, source, actor.rank);
    if (link.queue.empty()) {
      link.waiting_receiver = a;
      return false;
    }
    Message message = std::move(link.queue.front());
    link.queue.pop_front();
    if (link.waiting_sender >= 0) runnable_.push_back(std::exchange(link.waiting_sender, -1));
    if (message.count != slice.count)
      fail_at(actor, " expects " + str(slice.count) + " elements from rank " + str(source) +
                         ", which sent " + str(message.count) + " in its step " +
                         str(message.sent_in));
    take(actor, message, slice);
  }
  actor.sending = true;
  actor.peer = 0;
  return true;
}

// Grants permissions for all receives that the actor posts in its step.
void Play::post_receives(int a) {
  const Posting& posting = schedule_.flow_control().posting;
  if (!posting.needed()) return;
  ActorState& actor = actors_[a];
  const int end = std::min(actor.actor.steps, actor.k + posting.receives + 1);
  for (; actor.posted < end; ++actor.posted) {
    const Step step = schedule_.step(actor.rank, actor.index, actor.posted);
    for (const GroupRank source : step.recv_from) {
      Connection& link = connection(actor.actor.channel, source, actor.rank);
      link.permitted += step.slices;
      if (link.waiting_sender >= 0) runnable_.push_back(std::exchange(link.waiting_sender, -1));
    }
  }
}

void Play::take(ActorState& actor, const Message& message, const Block& slice) {
  actor.received_until = std::max(message.round, actor.received_until + 1);
  report_.rounds = std::max(report_.rounds, actor.received_until);
  if (clocks_)
    for (std::size_t i = 0; i < actor.clock.size(); ++i)
      actor.clock[i] = std::max(actor.clock[i], message.clock[i]);
  const Value* arrived = message.values.data();
  if (!actor.step.scattered) return combine(actor, arrived, slice, actor.step.on_recv);
  for (const Block& piece : actor.recv_pieces) {
    if (piece.buffer != Buffer::none) combine(actor, arrived, piece, actor.step.on_recv);
    arrived += piece.count;
  }
}

void Play::do_locals(const ActorState& actor) {
  for (const auto& [from, to, how] : actor.locals) {
    if (from.count == 0) continue;
    touch(actor, from, false);
    combine(actor, buffer(actor, from.buffer).data() + from.offset, to, how);
  }
}

void Play::combine(const ActorState& actor, const Value* arrived, const Block& block, Combine how) {
  touch(actor, block, true);
  Value* into = buffer(actor, block.buffer).data() + block.offset;
  if (how == Combine::copy) {
    std::copy(arrived, arrived + block.count, into);
    return;
  }
  std::pair<std::uint32_t, std::uint32_t> sum_of{0, 0};
  std::uint32_t sum = contributions_.sum(0, 0);
  for (std::uint64_t i = 0; i < block.count; ++i) {
    const Value &mine = into[i], &theirs = arrived[i];
    if (mine.set != 0 && theirs.set != 0 && mine.element != theirs.element)
      fail_at(actor, " reduces unlike elements at " + str(block.offset + i) + ": " +
                         contributions_.describe(mine) + " with " +
                         contributions_.describe(theirs));
    // Rare: contributions are uniform in a block.
    if (mine.set != sum_of.first || theirs.set != sum_of.second) {
      sum_of = {mine.set, theirs.set};
      sum = contributions_.sum(mine.set, theirs.set);
    }
    into[i] = {sum, std::max(mine.element, theirs.element)};
  }
}

// The content of a message, read from the rank's buffers.
std::vector<Value> Play::content(const ActorState& actor, const Block& block) {
  std::vector<Value> values;
  const auto append = [&](const Block& part) {
    if (part.buffer == Buffer::none) return values.resize(values.size() + part.count);
    touch(actor, part, false);
    const Value* from = buffer(actor, part.buffer).data() + part.offset;
    values.insert(values.end(), from, from + part.count);
  };
  if (!actor.step.scattered)
    append(block);
  else
    for (const Block& piece : actor.send_pieces) append(piece);
  return values;
}

// Sends the current slice to every peer. Returns false if it must wait for a credit or a
// permission. Waiting for a permission is stricter than an engine that continues meanwhile.
bool Play::send(int a) {
  ActorState& actor = actors_[a];
  const Block slice = slice_of(actor.step.send, actor.step, actor.slice);
  const std::uint32_t credits = schedule_.flow_control().credits;
  const bool needs_permission = schedule_.flow_control().posting.needed();
  for (; actor.peer < actor.step.send_to.size(); ++actor.peer) {
    const GroupRank target = actor.step.send_to[actor.peer];
    Connection& link = connection(actor.actor.channel, actor.rank, target);
    if (link.sender != a && link.sender != -1)
      fail_at(actor, " sends to rank " + str(target) + " on channel " + str(actor.actor.channel) +
                         ", as actor " + str(actors_[link.sender].index) + " does too");
    link.sender = a;
    if (needs_permission ? link.permitted == 0 : credits > 0 && link.queue.size() >= credits) {
      link.waiting_sender = a;
      return false;
    }
    if (needs_permission) --link.permitted;
    actor.sent_until = std::max(actor.sent_until, actor.received_until) + 1;
    report_.rounds = std::max(report_.rounds, actor.sent_until);
    link.queue.push_back(
        {slice.count, content(actor, slice), actor.clock, actor.sent_until, actor.k});
    if (clocks_) ++actor.clock[a];
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

std::vector<Value>& Play::buffer(const ActorState& actor, Buffer which) {
  RankState& rank = ranks_[actor.rank];
  return which == Buffer::work ? rank.work : which == Buffer::input ? rank.input : rank.scratch;
}

// Requires that messages or dependencies order every earlier access of another actor of the rank to
// these elements before this one. Scratch elements are numbered after those of the work buffer.
void Play::touch(const ActorState& actor, const Block& touched, bool write) {
  if (touched.buffer == Buffer::input) return;  // nobody writes an input buffer
  RankState& rank = ranks_[actor.rank];
  const bool scratch = touched.buffer == Buffer::scratch;
  const Block block{touched.offset + (scratch ? rank.work.size() : 0), touched.count};
  if (!clocks_) {
    shares_elements_ |= rank.sharing.note(actor.index, block);
    return;
  }
  const auto conflict =
      rank.order.access(actor.index, block, write, actor.clock.data() + rank.first_actor);
  if (conflict)
    fail_at(actor, std::string(write ? " writes " : " reads ") + (scratch ? "scratch " : "") +
                       "element " + str(conflict->element - (scratch ? rank.work.size() : 0)) +
                       " while actor " + str(conflict->other) +
                       " uses it: no message puts one before the other");
}

void Play::check_block(const ActorState& actor, const Block& block, const char* what) const {
  const RankState& rank = ranks_[actor.rank];
  const std::uint64_t size = block.buffer == Buffer::work    ? rank.work.size()
                             : block.buffer == Buffer::input ? rank.input.size()
                                                             : rank.scratch.size();
  if (block.offset > size || block.count > size - block.offset)
    fail_at(actor, std::string(": the block it ") + what + ", [" + str(block.offset) + ", " +
                       str(block.offset + block.count) + "), is outside the buffer of " +
                       str(size) + " elements");
  const Step& step = actor.step;
  if (!step.scattered && step.slice_elements > 0 && step.slices * step.slice_elements < block.count)
    fail_at(actor, ": " + str(std::uint64_t{step.slices}) + " slices of " +
                       str(step.slice_elements) + " leave out part of a block of " +
                       str(block.count));
}

void Play::check_peers(const ActorState& actor, const Peers& peers) const {
  for (const GroupRank peer : peers)
    if (peer < 0 || peer >= c_.size || peer == actor.rank)
      fail_at(actor, ": rank " + str(peer) + " cannot be its peer");
  if (!peers.empty() && actor.step.slices == 0) fail_at(actor, ": peers, but no slices");
}

}  // namespace ghostrank::checking
