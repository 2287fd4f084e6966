#include "emulator/traffic/longest_chain.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ghostrank {
namespace {

constexpr int kAllChannels = -1;
constexpr int kNobody = -1;

// Plays the call with messages that take 1 and no other times. An actor runs until it waits for a
// message or for a step of another actor, which then puts it back on the list. What an actor waits
// for is decided by the schedule alone, so the order of the list does not matter.
class Chain {
 public:
  Chain(const Schedule& schedule, int channel, Loops loops) : schedule_(schedule) {
    for (GroupRank r = 0; r < schedule.collective().size; ++r) {
      first_of_rank_.push_back(static_cast<int>(actors_.size()));
      for (int a = 0; a < schedule.actors(r); ++a) {
        Actor actor = schedule.actor(r, a);
        if (loops == Loops::first && actor.loop > 0)
          actor.steps = std::min(actor.steps, actor.loop);
        const bool plays = channel == kAllChannels || actor.channel == channel;
        steps_ += plays ? static_cast<std::size_t>(actor.steps) : 0;
        actors_.push_back({r, a, actor.channel, plays ? actor.steps : 0, plays});
      }
    }
  }

  std::size_t steps() const { return steps_; }

  int length() {
    for (int a = 0; a < static_cast<int>(actors_.size()); ++a) ready_.push_back(a);
    while (!ready_.empty()) {
      const int a = ready_.back();
      ready_.pop_back();
      advance(a);
    }
    return longest_;
  }

 private:
  struct Connection {  // all-to-alls have many
    std::vector<int> arrivals;
    std::uint32_t taken = 0;  // of the arrivals
    int waiting = kNobody;    // actor
  };
  struct Last {  // the connection that an actor used last, and with whom
    GroupRank peer = kNoRank;
    Connection* connection = nullptr;
  };
  struct ActorAt {
    GroupRank rank;
    int index, channel, steps;
    bool plays;
    int k = 0, time = 0;
    bool loaded = false, begun = false;
    std::uint32_t slice = 0;
    int peer = 0;
    Step step{};
    Last from{}, to{};
    std::vector<int> ends{};     // when each step ended
    std::vector<int> waiting{};  // actors that wait for one of its steps
  };

  void advance(int a) {
    ActorAt& actor = actors_[static_cast<std::size_t>(a)];
    for (; actor.k < actor.steps; ++actor.k, actor.loaded = false) {
      if (!actor.loaded) {
        actor.step = schedule_.step(actor.rank, actor.index, actor.k);
        actor.loaded = true;
        actor.begun = !actor.step.depends;
        actor.slice = 0;
        actor.peer = 0;
      }
      if (!actor.begun && !begin(a)) return;
      for (; actor.slice < actor.step.slices; ++actor.slice, actor.peer = 0) {
        if (!receive(a)) return;
        for (const GroupRank peer : actor.step.send_to) send(actor, peer);
      }
      actor.ends.push_back(actor.time);
      ready_.insert(ready_.end(), actor.waiting.begin(), actor.waiting.end());
      actor.waiting.clear();
    }
  }

  bool begin(int a) {
    ActorAt& actor = actors_[static_cast<std::size_t>(a)];
    const StepOf on = schedule_.dependency(actor.rank, actor.index, actor.k);
    const int first = first_of_rank_[static_cast<std::size_t>(actor.rank)];
    ActorAt& other = actors_[static_cast<std::size_t>(first + on.actor)];
    const auto step = static_cast<std::size_t>(on.step);
    if (other.plays && other.ends.size() <= step) {
      other.waiting.push_back(a);
      return false;
    }
    if (other.plays) actor.time = std::max(actor.time, other.ends[step]);
    return actor.begun = true;
  }

  // Receives the current slice from every peer. Returns false if it must wait for a message.
  bool receive(int a) {
    ActorAt& actor = actors_[static_cast<std::size_t>(a)];
    for (; actor.peer < actor.step.recv_from.size(); ++actor.peer) {
      const GroupRank peer = actor.step.recv_from[actor.peer];
      if (actor.from.peer != peer)
        actor.from = {peer, &connection(actor.channel, peer, actor.rank)};
      Connection& from = *actor.from.connection;
      if (from.taken == from.arrivals.size()) {
        from.arrivals.clear();
        from.taken = 0;
        from.waiting = a;
        return false;
      }
      actor.time = std::max(actor.time, from.arrivals[from.taken++]);
    }
    return true;
  }

  void send(ActorAt& actor, GroupRank peer) {
    if (actor.to.peer != peer) actor.to = {peer, &connection(actor.channel, actor.rank, peer)};
    Connection& to = *actor.to.connection;
    longest_ = std::max(longest_, actor.time + 1);
    to.arrivals.push_back(actor.time + 1);
    if (to.waiting != kNobody) ready_.push_back(std::exchange(to.waiting, kNobody));
  }

  Connection& connection(int channel, GroupRank from, GroupRank to) {
    return connections_[static_cast<std::uint64_t>(channel) << 48 |
                        static_cast<std::uint64_t>(from) << 24 | static_cast<std::uint64_t>(to)];
  }

  const Schedule& schedule_;
  std::size_t steps_ = 0;
  int longest_ = 0;
  std::vector<ActorAt> actors_;
  std::vector<int> first_of_rank_, ready_;
  std::unordered_map<std::uint64_t, Connection> connections_;
};

}  // namespace

int longest_chain(const Schedule& schedule, Loops loops) {
  return Chain(schedule, kAllChannels, loops).length();
}

std::optional<int> chain_of_a_channel(const Schedule& schedule, std::size_t most, Loops loops) {
  if (schedule.actors(0) == 0) return 0;
  Chain chain(schedule, schedule.actor(0, 0).channel, loops);
  if (chain.steps() > most) return std::nullopt;
  return chain.length();
}

}  // namespace ghostrank
