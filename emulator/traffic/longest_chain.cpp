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
constexpr LinkSpeed kMessages{.latency = 1};  // counts them

// Plays the call with messages that take a latency and the time of their bytes at their actors'
// links, and no other times; in exact numbers, so that sums are those of their bytes. An actor runs
// until it waits for a message or for a step of another actor, which then puts it back on the list.
// What an actor waits for is decided by the schedule alone, so the order of the list matters only
// to actors that wait for nothing: they are in the order in which a rank starts them.
class Chain {
 public:
  Chain(const Schedule& schedule, int channel, Loops loops, const LinkSpeed& link)
      : schedule_(schedule),
        link_(link),
        latency_(static_cast<double>(link.latency)),
        timed_(link.limited()) {
    for (GroupRank r = 0; r < schedule.collective().size; ++r) {
      first_of_rank_.push_back(static_cast<int>(actors_.size()));
      roots_sent_.push_back(0);
      at_ends_.emplace_back();
      for (int a = 0; a < schedule.actors(r); ++a) {
        Actor actor = schedule.actor(r, a);
        if (loops == Loops::first && actor.loop > 0)
          actor.steps = std::min(actor.steps, actor.loop);
        const bool plays = channel == kAllChannels || actor.channel == channel;
        steps_ += plays ? static_cast<std::size_t>(actor.steps) : 0;
        actors_.push_back({r, a, actor.channel, plays ? actor.steps : 0, plays});
        if (!plays || !timed_ || has_credits()) continue;
        actors_.back().is_root = never(r, a, actor.steps, &Step::recv_from);
        actors_.back().is_end = never(r, a, actor.steps, &Step::send_to);
      }
    }
  }

  std::size_t steps() const { return steps_; }

  double length() {
    for (int a = static_cast<int>(actors_.size()); a-- > 0;) ready_.push_back(a);
    while (!ready_.empty()) {
      const int a = ready_.back();
      ready_.pop_back();
      advance(a);
    }
    for (std::vector<Arrival>& arrivals : at_ends_) receive_all(arrivals);
    return longest_;
  }

 private:
  struct Arrival {
    double at, duration;  // when the last byte is there; how long its bytes take
  };
  struct Connection {  // all-to-alls have many
    std::vector<Arrival> arrivals;
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
    bool is_root = false;  // it waits for no message
    bool is_end = false;   // nobody waits for it
    int k = 0;
    double time = 0;
    double sent = 0;               // when its link has sent all so far
    double busy_from = 0, in = 0;  // its link receives all the time between
    bool loaded = false, begun = false;
    std::uint32_t slice = 0;
    int peer = 0;
    Step step{};
    Last from{}, to{};
    std::vector<double> ends{};  // when each step ended
    std::vector<int> waiting{};  // actors that wait for one of its steps
  };

  // Whether senders wait for the receiver: roots do not send all at once then.
  bool has_credits() const {
    return schedule_.flow_control().credits > 0 || schedule_.flow_control().posting.needed();
  }
  bool never(GroupRank r, int a, int steps, Peers Step::*exchanges) const {
    for (int k = 0; k < steps; ++k)
      if (!(schedule_.step(r, a, k).*exchanges).empty()) return false;
    return true;
  }
  // A rank's link receives one byte after the other, for whichever of its ends.
  void receive_all(std::vector<Arrival>& arrivals) {
    std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
      return a.at - a.duration < b.at - b.duration;
    });
    double in = 0;
    for (const Arrival& one : arrivals) in = std::max(in, one.at - one.duration) + one.duration;
    longest_ = std::max(longest_, in);
  }

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
      come_in(actor, from.arrivals[from.taken++]);
    }
    return true;
  }

  // The actor goes on no sooner than its link can have received the bytes, in whatever order.
  void come_in(ActorAt& actor, const Arrival& message) {
    if (actor.is_end) at_ends_[static_cast<std::size_t>(actor.rank)].push_back(message);
    const double head = message.at - message.duration;
    if (head >= actor.in) {
      actor.busy_from = head;
      actor.in = message.at;
    } else {
      actor.in += message.duration - std::max(0.0, actor.busy_from - head);
      actor.busy_from = std::min(actor.busy_from, head);
    }
    actor.time = std::max({actor.time, message.at, actor.in});
    longest_ = std::max(longest_, actor.time);
  }

  void send(ActorAt& actor, GroupRank peer) {
    double duration = 0;
    if (timed_) {
      const std::uint64_t elements = slice_of(actor.step.send, actor.step, actor.slice).count;
      duration =
          link_.ps_per_byte *
          static_cast<double>(link_.on_wire(elements * schedule_.collective().element_bytes));
    }
    double& sent = actor.is_root ? roots_sent_[static_cast<std::size_t>(actor.rank)] : actor.sent;
    sent = std::max(sent, actor.time) + duration;
    if (actor.to.peer != peer) actor.to = {peer, &connection(actor.channel, actor.rank, peer)};
    Connection& to = *actor.to.connection;
    longest_ = std::max(longest_, sent + latency_);
    to.arrivals.push_back({sent + latency_, duration});
    if (to.waiting != kNobody) ready_.push_back(std::exchange(to.waiting, kNobody));
  }

  Connection& connection(int channel, GroupRank from, GroupRank to) {
    return connections_[static_cast<std::uint64_t>(channel) << 48 |
                        static_cast<std::uint64_t>(from) << 24 | static_cast<std::uint64_t>(to)];
  }

  const Schedule& schedule_;
  const LinkSpeed link_;
  const double latency_;
  const bool timed_;
  std::size_t steps_ = 0;
  double longest_ = 0;
  std::vector<ActorAt> actors_;
  std::vector<int> first_of_rank_, ready_;
  std::vector<double> roots_sent_;  // by rank: when its link has sent all of its roots so far
  std::vector<std::vector<Arrival>> at_ends_;  // by rank: what its ends receive
  std::unordered_map<std::uint64_t, Connection> connections_;
};

}  // namespace

int longest_chain(const Schedule& schedule, Loops loops) {
  return static_cast<int>(Chain(schedule, kAllChannels, loops, kMessages).length());
}

Picoseconds longest_time(const Schedule& schedule, Loops loops, const LinkSpeed& link) {
  return picoseconds(Chain(schedule, kAllChannels, loops, link).length());
}

std::optional<int> chain_of_a_channel(const Schedule& schedule, std::size_t most, Loops loops) {
  if (schedule.actors(0) == 0) return 0;
  Chain chain(schedule, schedule.actor(0, 0).channel, loops, kMessages);
  if (chain.steps() > most) return std::nullopt;
  return static_cast<int>(chain.length());
}

}  // namespace ghostrank
