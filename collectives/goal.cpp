// See goal.h. An actor does one thing after the other, but the messages of one slice to several
// peers wait for the same operations and not for each other.
//
// Threading: pure functions.
#include "collectives/goal.h"

#include <utility>
#include <vector>

namespace ghostrank {
namespace {

using Labels = std::vector<int>;

class RankGoal {
 public:
  RankGoal(const Schedule& schedule, Rank r) : schedule_(schedule), rank_(r) {}

  std::string write() {
    const int actors = schedule_.actors(rank_);
    ends_.resize(static_cast<std::size_t>(actors));
    for (int a = 0; a < actors; ++a) write_actor(a);
    for (const auto& [label, on] : awaited_)
      require(label, ends_[static_cast<std::size_t>(on.actor)][static_cast<std::size_t>(on.step)]);
    if (labels_ == 0) add("calc 0", {});
    return "rank " + std::to_string(rank_) + " {\n" + operations_ + dependencies_ + "}\n";
  }

 private:
  void write_actor(int a) {
    const Actor actor = schedule_.actor(rank_, a);
    Labels last;  // what the next operation comes after
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule_.step(rank_, a, k);
      if (step.depends) {
        last = {add("calc 0", last)};
        awaited_.emplace_back(last[0], schedule_.dependency(rank_, a, k));
      }
      for (std::uint32_t s = 0; s < step.slices; ++s) write_slice(actor.channel, step, s, last);
      ends_[static_cast<std::size_t>(a)].push_back(last);
    }
  }

  void write_slice(int channel, const Step& step, std::uint32_t s, Labels& last) {
    const std::string tag = " tag " + std::to_string(channel);
    const std::string in = bytes(slice_of(step.recv, step, s).count);
    const std::string out = bytes(slice_of(step.send, step, s).count);
    Labels now;
    for (const Rank peer : step.recv_from)
      now.push_back(add("recv " + in + " from " + std::to_string(peer) + tag, last));
    if (!now.empty()) last = std::exchange(now, {});
    if (step.local) last = {add("calc 0", last)};
    for (const Rank peer : step.send_to)
      now.push_back(add("send " + out + " to " + std::to_string(peer) + tag, last));
    if (!now.empty()) last = std::move(now);
  }

  std::string bytes(std::uint64_t elements) const {
    const std::uint32_t element = schedule_.collective().element_bytes;
    return std::to_string(message_bytes(schedule_.protocol(), elements, element)) + "b";
  }

  int add(const std::string& what, const Labels& after) {
    operations_ += "l" + std::to_string(++labels_) + ": " + what + "\n";
    require(labels_, after);
    return labels_;
  }

  void require(int label, const Labels& after) {
    for (const int other : after)
      dependencies_ += "l" + std::to_string(label) + " requires l" + std::to_string(other) + "\n";
  }

  const Schedule& schedule_;
  const Rank rank_;
  int labels_ = 0;
  std::string operations_, dependencies_;
  std::vector<std::vector<Labels>> ends_;        // by actor and step
  std::vector<std::pair<int, StepOf>> awaited_;  // operations that wait for another actor's step
};

}  // namespace

std::string to_goal(const Schedule& schedule) {
  const int ranks = schedule.collective().size;
  std::string text = "num_ranks " + std::to_string(ranks) + "\n";
  for (Rank r = 0; r < ranks; ++r) text += RankGoal(schedule, r).write();
  return text;
}

}  // namespace ghostrank
