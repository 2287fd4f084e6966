// The frame of the symbolic play: initial content, main loop, final checks. See checker_play.h.
//
// Threading: one owner.
#include "collectives/check/checker.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "collectives/check/checker_play.h"

namespace ghostrank {
namespace checking {

std::string Play::where(const ActorState& actor) {
  return "rank " + str(actor.rank) + " actor " + str(actor.index) + " step " + str(actor.k);
}

void Play::fail_at(const ActorState& actor, const std::string& what) {
  fail(where(actor) + what, {actor.rank, actor.index, actor.k});
}

Connection& Play::connection(int channel, GroupRank source, GroupRank destination) {
  const auto key = (static_cast<std::uint64_t>(channel) << 48) |
                   (static_cast<std::uint64_t>(source) << 24) | destination;
  return connections_[key];
}

void Play::set_up() {
  if (c_.size >= 1 << 24) fail("too many ranks to check");
  for (GroupRank r = 0; r < c_.size; ++r) set_up_rank(r);
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    if (clocks_) {
      actors_[a].clock.assign(actors_.size(), 0);
      actors_[a].clock[a] = 1;
    }
    runnable_.push_back(static_cast<int>(a));
  }
  note_dependencies();
}

void Play::set_up_rank(GroupRank r) {
  const std::uint64_t work = work_elements(c_, r), input = input_elements(schedule_, r);
  const std::uint64_t scratch = schedule_.scratch_elements(r);
  if (std::max({work, input, scratch}) > std::numeric_limits<std::uint32_t>::max())
    fail("too many elements to check");
  RankState& rank = ranks_.emplace_back();
  for (std::uint64_t e = 0; e < work; ++e) rank.work.push_back(contract_.initial_work(r, e));
  for (std::uint64_t e = 0; e < input; ++e) rank.input.push_back(contract_.initial_input(r, e));
  rank.scratch.resize(scratch);
  rank.first_actor = static_cast<int>(actors_.size());
  rank.actors = schedule_.actors(r);
  for (int a = 0; a < rank.actors; ++a) {
    ActorState& actor = actors_.emplace_back();
    actor.rank = r;
    actor.index = a;
    actor.actor = schedule_.actor(r, a);
    if (actor.actor.channel < 0 || actor.actor.channel >= 1 << 16)
      fail_at(actor, ": channel " + str(actor.actor.channel) + " is out of range");
  }
  if (clocks_)
    rank.order = AccessOrder(work + scratch, rank.actors);
  else
    rank.sharing = Sharing(work + scratch);
}

// Marks the steps that other actors depend on, because their end must be recorded when they end.
void Play::note_dependencies() {
  for (ActorState& actor : actors_) {
    const RankState& rank = ranks_[actor.rank];
    for (actor.k = 0; actor.k < actor.actor.steps; ++actor.k) {
      if (!schedule_.step(actor.rank, actor.index, actor.k).depends) continue;
      const StepOf on = schedule_.dependency(actor.rank, actor.index, actor.k);
      const std::size_t other = rank.first_actor + on.actor;
      if (on.actor < 0 || on.actor >= rank.actors || on.step < 0 ||
          on.step >= actors_[other].actor.steps)
        fail_at(actor, " depends on step " + str(on.step) + " of actor " + str(on.actor) +
                           ", which there is not");
      actors_[other].ended[on.step];
    }
    actor.k = 0;
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

void Play::verify_result() const {
  for (GroupRank r = 0; r < c_.size; ++r) {
    const std::vector<Value>& work = ranks_[r].work;
    for (std::uint64_t e = 0; e < work.size(); ++e) {
      const std::optional<Value> required = contract_.required(r, e);
      if (required && work[e] != *required)
        fail("rank " + str(r) + " ends with wrong content at " + str(e) + ": " +
                 contributions_.describe(work[e]) + " instead of " +
                 contributions_.describe(*required),
             {r});
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
          heard |= actors_[a].clock[b] > 0;
      if (!heard)
        fail("rank " + str(static_cast<int>(&rank - ranks_.data())) +
             " leaves the barrier without having heard of rank " +
             str(static_cast<int>(&other - ranks_.data())));
    }
}

void Play::report_deadlock() const {
  std::string text = "deadlock:";
  int listed = 0;
  CheckReport::Where first;
  for (const ActorState& actor : actors_) {
    if (actor.k >= actor.actor.steps) continue;
    if (listed == 0) first = {actor.rank, actor.index, actor.k};
    if (++listed > 8) {
      text += " ...";
      break;
    }
    text += listed > 1 ? "; " : " ";
    if (!actor.begun) {
      const StepOf on = schedule_.dependency(actor.rank, actor.index, actor.k);
      text += where(actor) + " waits for step " + str(on.step) + " of actor " + str(on.actor);
      continue;
    }
    const Peers& peers = actor.sending ? actor.step.send_to : actor.step.recv_from;
    text += where(actor) + " waits for " +
            (!actor.sending                              ? "a message from rank "
             : schedule_.flow_control().posting.needed() ? "a receive to be posted by rank "
                                                         : "a credit from rank ") +
            str(peers[actor.peer]);
  }
  fail(text, first);
}

}  // namespace checking

CheckReport check(const Schedule& schedule, CheckOptions options) {
  using checking::Failure, checking::Play;
  try {
    const bool barrier = schedule.collective().func == Func::barrier;
    Play play(schedule, options, barrier);
    CheckReport report = play.run();
    if (play.shares_elements()) Play(schedule, {}, true).run();
    return report;
  } catch (const Failure& failure) {
    CheckReport report;
    report.error = failure.text;
    report.at = failure.at;
    return report;
  }
}

}  // namespace ghostrank
