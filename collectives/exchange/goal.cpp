// See goal.h. An actor's operations run one after the other, but the messages of one slice to
// several peers wait for the same operations and not for each other.
#include "collectives/exchange/goal.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace ghostrank {
namespace {

// One rank's part of a call.
class CallGoal {
 public:
  using Labels = RankGoal::Labels;

  CallGoal(RankGoal& goal, const Schedule& schedule, GroupRank position,
           std::span<const WorldRank> members, const std::function<int(int)>& tag_of)
      : goal_(goal),
        schedule_(schedule),
        position_(position),
        members_(members),
        tag_of_(tag_of),
        ends_(schedule.actors(position)) {}

  Labels write(const Labels& after) {
    Labels ends;
    for (std::size_t a = 0; a < ends_.size(); ++a) {
      const Labels last = write_actor(static_cast<int>(a), after);
      if (!ends_[a].empty()) ends.insert(ends.end(), last.begin(), last.end());
    }
    for (const auto& [label, on] : awaited_) follows(label, ends_[on.actor][on.step]);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends.empty() ? after : ends;
  }

 private:
  Labels write_actor(int a, Labels last) {
    const Actor actor = schedule_.actor(position_, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule_.step(position_, a, k);
      if (step.depends) {
        last = {follows(goal_.calc(0, {}), last)};
        awaited_.emplace_back(last[0], schedule_.dependency(position_, a, k));
      }
      for (std::uint32_t s = 0; s < step.slices; ++s)
        write_slice(tag_of_(actor.channel), step, s, last);
      ends_[a].push_back(last);
    }
    return last;
  }

  void write_slice(int tag, const Step& step, std::uint32_t s, Labels& last) {
    const std::uint64_t in = bytes(slice_of(step.recv, step, s).count);
    const std::uint64_t out = bytes(slice_of(step.send, step, s).count);
    Labels now;
    for (const GroupRank peer : step.recv_from)
      now.push_back(follows(goal_.receive(in, members_[peer], tag, {}), last));
    if (!now.empty()) last = std::exchange(now, {});
    if (step.local) last = {follows(goal_.calc(0, {}), last)};
    for (const GroupRank peer : step.send_to)
      now.push_back(follows(goal_.send(out, members_[peer], tag, {}), last));
    sends_.insert(now.begin(), now.end());
    if (!now.empty()) last = std::move(now);
  }

  // Puts the operation `label` after `last`: after the end of receives and local work, but after
  // the start of the call's own sends. A step ends when its messages are on their way; if the next
  // one waited until they have been received, a ring in which all send first would never receive.
  int follows(int label, const Labels& last) {
    for (const int other : last) goal_.require(label, other, sends_.contains(other));
    return label;
  }

  std::uint64_t bytes(std::uint64_t elements) const {
    return message_bytes(schedule_.protocol(), elements, schedule_.collective().element_bytes);
  }

  RankGoal& goal_;
  const Schedule& schedule_;
  const GroupRank position_;
  const std::span<const WorldRank> members_;
  const std::function<int(int)>& tag_of_;
  std::set<int> sends_;                          // of the call
  std::vector<std::vector<Labels>> ends_;        // by actor and step
  std::vector<std::pair<int, StepOf>> awaited_;  // operations that wait for a step of another actor
};

std::string message(const char* verb, std::uint64_t bytes, const char* direction, WorldRank peer,
                    int tag) {
  return verb + std::to_string(bytes) + direction + to_string(peer) + " tag " + std::to_string(tag);
}

}  // namespace

int RankGoal::calc(std::uint64_t nanoseconds, const Labels& after, std::size_t cpu) {
  return add("calc " + std::to_string(nanoseconds) + (cpu > 0 ? " cpu " + std::to_string(cpu) : ""),
             after);
}

int RankGoal::send(std::uint64_t bytes, WorldRank to, int tag, const Labels& after) {
  return add(message("send ", bytes, "b to ", to, tag), after);
}

int RankGoal::receive(std::uint64_t bytes, WorldRank from, int tag, const Labels& after) {
  return add(message("recv ", bytes, "b from ", from, tag), after);
}

void RankGoal::require(int label, int other, bool its_start) {
  dependencies_ += "l" + std::to_string(label) + (its_start ? " irequires l" : " requires l") +
                   std::to_string(other) + "\n";
}

int RankGoal::add(const std::string& what, const Labels& after) {
  operations_ += "l" + std::to_string(++labels_) + ": " + what + "\n";
  for (const int other : after) require(labels_, other);
  return labels_;
}

RankGoal::Labels RankGoal::call(const Schedule& schedule, GroupRank position,
                                std::span<const WorldRank> members,
                                const std::function<int(int)>& tag_of, const Labels& after) {
  return CallGoal(*this, schedule, position, members, tag_of).write(after);
}

std::string RankGoal::text(WorldRank rank) const {
  const std::string operations = labels_ == 0 ? "l1: calc 0\n" : operations_;
  return "rank " + to_string(rank) + " {\n" + operations + dependencies_ + "}\n";
}

std::string to_goal(const Schedule& schedule) {
  const int ranks = schedule.collective().size;
  const std::vector<WorldRank> members = world_ranks(ranks);
  std::string text = "num_ranks " + std::to_string(ranks) + "\n";
  for (const WorldRank rank : members) {
    RankGoal goal;
    goal.call(schedule, rank.value(), members, [](int channel) { return channel; }, {});
    text += goal.text(rank);
  }
  return text;
}

}  // namespace ghostrank
