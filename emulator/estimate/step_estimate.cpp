#include "emulator/estimate/step_estimate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "emulator/estimate/calls_under_way.h"
#include "emulator/estimate/groups_alike.h"
#include "emulator/estimate/resource_classes.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

}  // namespace

// The ranks that are followed, one of every role, and how far each has come.
struct StepEstimator::Followed {
  // `shares`: calls share NICs and links; else each is alone.
  Followed(CallTimes& times, const JobSpec& spec, const Workload& workload, bool shares)
      : times_(times),
        spec_(spec),
        workload_(workload),
        evenly_(spec.fabric.network == NetworkModel::flow),
        groups_(spec, workload),
        roles_(workload.roles.size()) {
    if (shares) on_network_.emplace(spec, workload);
    for (int rank = workload.ranks; rank-- > 0;)
      roles_[workload.role_of[WorldRank(rank)]].rank = WorldRank(rank);
    for (Role& role : roles_) {
      role.group_of.assign(workload.group_names.size(), kNone);
      role.meeting_of.assign(workload.group_names.size(), nullptr);
      role.position.assign(workload.group_names.size(), 0);
    }
    for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
      const Group& group = workload.groups[g];
      for (GroupRank i = 0; i < std::ssize(group.members); ++i) {
        Role& role = roles_[workload.role_of[group.members[i]]];
        if (role.rank != group.members[i]) continue;
        role.group_of[group.kind] = g;
        role.position[group.kind] = i;
        Meeting& meeting = meetings_[g];
        role.meeting_of[group.kind] = &meeting;
        meeting.roles.push_back(&role - roles_.data());
      }
    }
    for (auto& [g, meeting] : meetings_) {
      meeting.alike = groups_.alike(g);
      meeting.placed = groups_.placed_differently(meeting.alike);
      meeting.inside_nodes = inside_nodes(meeting);
    }
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      const Program& program = workload.roles[r].iterations.back();
      roles_[r].program = &program;
      for (std::size_t stream = 0; stream < program.streams.size(); ++stream)
        roles_[r].streams.push_back({std::vector<After>(workers(program, stream))});
      roles_[r].events.resize(program.events);
      if (carries_over(program))
        throw Error("a step whose streams outlive it is played: it cannot be estimated");
    }
    find_ways();
  }

  void follow() {
    wakes_.assign(roles_.size(), true);
    const CallsUnderWay::End* ended = nullptr;
    do {
      if (ended) wake(*ended->waiting);
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t r = 0; r < roles_.size(); ++r) {
          if (!wakes_[r]) continue;
          wakes_[r] = false;
          for (std::size_t s = 0; s < roles_[r].streams.size(); ++s)
            while (step(r, s)) moved = wakes_[r] = true;
        }
      }
      ended = under_way_->end_next();
    } while (ended);
    for (const Role& role : roles_)
      for (std::size_t s = 0; s < role.streams.size(); ++s)
        if (role.streams[s].next < role.program->streams[s].size())
          throw Error("the step cannot be estimated: role " +
                      workload_.roles[&role - roles_.data()].name +
                      " waits for a call that nobody else makes");
  }

  StepEstimate result() const {
    StepEstimate out{workload_.least, 0};
    for (const Role& role : roles_) {
      out.compute = std::max(out.compute, role.compute);
      for (const Stream& stream : role.streams) out.step = std::max(out.step, stream.end());
    }
    return out;
  }

 private:
  using End = CallsUnderWay::End;
  static constexpr End kAtOnce{};

  // So long after the end of a call, which may be unknown.
  struct After {
    const End* end = &kAtOnce;
    Picoseconds more = 0;
    Picoseconds at() const { return end->at == kUnknown ? kUnknown : end->at + more; }
  };

  // One end has come, or both.
  struct Transfer {
    const CallsUnderWay::Call* call = nullptr;  // that has not begun: it waits for the receiver
    After before;                               // the call does not begin before
    End* end = nullptr;                         // null: the sender has not come
    Picoseconds come = kUnknown;                // of the receiver
    Picoseconds tail = 0;                       // arrives so long after `end`
    bool apart = false;                         // from those of the replicas
  };

  // Transfers from one role to another, which both wait for their ends.
  struct Channel {
    std::vector<std::size_t> roles;
    std::deque<Transfer> transfers;
    std::size_t first = 0, sent = 0, come = 0;  // number of transfers[0]; of ends that have come
  };

  struct Stream {
    std::vector<After> workers;  // when each has ended its last call
    std::size_t next = 0;        // op
    Picoseconds time = 0;        // when a call may begin, if a worker is free
    bool come = false;           // it has reached its next call
    std::size_t call = 0;        // that call's number in its communicator

    // When all ops so far have ended.
    Picoseconds end() const {
      Picoseconds last = time;
      for (const After& worker : workers) last = std::max(last, worker.at());
      return last;
    }
    After& first_free() {
      return *std::min_element(workers.begin(), workers.end(),
                               [](const After& a, const After& b) { return a.at() < b.at(); });
    }
  };
  struct Meeting;
  struct Role {
    WorldRank rank;
    const Program* program = nullptr;
    // By kind: the group, its calls, and the rank's number in it.
    std::vector<std::uint32_t> group_of;
    std::vector<Meeting*> meeting_of;
    std::vector<GroupRank> position;
    std::vector<Stream> streams;
    std::vector<std::queue<Picoseconds>> events;  // records that no wait has taken
    Picoseconds compute = 0;
    bool apart = false;  // from its replicas
  };
  // The calls of a communicator that some followed member has not ended, in order: how many members
  // have come to each and ended it, and when the last of them came. The streams of a member come to
  // one call after the other.
  struct Meeting {
    std::vector<std::size_t> roles;            // members that are followed
    std::vector<std::uint32_t> alike;          // it and those that make the same calls
    std::vector<std::uint32_t> placed;         // of these, one for every placement on nodes
    bool inside_nodes = false;                 // all of these
    std::map<std::size_t, std::size_t> begun;  // by role: calls to which it has come
    struct Call {
      std::size_t come = 0, ended = 0;
      Picoseconds start = 0;
      const End* end = nullptr;
    };
    std::deque<Call> calls;
    std::size_t first = 0;  // number of calls[0]
  };
  // Plays the next op of a stream; false if it has to wait, or none is left.
  bool step(std::size_t r, std::size_t s) {
    Role& role = roles_[r];
    Stream& stream = role.streams[s];
    const OpList& ops = role.program->streams[s];
    if (stream.next == ops.size()) return false;
    const Op& op = ops[stream.next];
    if (op.kind != Op::Kind::collective && op.kind != Op::Kind::wait) {
      const Picoseconds end = stream.end();
      if (end == kUnknown) return false;
      stream.time = end;
    }
    switch (op.kind) {
      case Op::Kind::compute:
        stream.time += op.duration;
        if (s == 0) role.compute += op.duration;
        break;
      case Op::Kind::record:
        role.events[op.event].push(stream.time);
        break;
      case Op::Kind::wait: {
        if (op.previous) break;  // recorded in an earlier step
        std::queue<Picoseconds>& records = role.events[op.event];
        if (records.empty()) return false;
        stream.time = std::max(stream.time, records.front());
        records.pop();
        break;
      }
      case Op::Kind::collective:
        if (!meet(r, stream, op)) return false;
        break;
      case Op::Kind::send:
      case Op::Kind::recv:
        if (!transfer(r, stream, op)) return false;
        break;
    }
    stream.come = false;
    ++stream.next;
    return true;
  }

  // Whether the launch has no earlier call in the op's communicator.
  bool is_first(const Op& op) const {
    const GroupedCalls& launch = workload_.launches[op.launch - 1];
    return std::none_of(launch.begin(), launch.begin() + op.launch_index, [&](const Op& call) {
      return call.kind == Op::Kind::collective && call.group == op.group;
    });
  }

  // What the network has to do for an op.
  struct Way {
    CallsUnderWay::Call call;
    // Of a transfer: when its sender is done alone; how long after the last byte has left it
    // arrives; and the same where others of `call` come first.
    Picoseconds sender = 0, tail = 0;
    CallsUnderWay::Call last;
    // Of a transfer: the share that leaves before its receiver has come; that part, and the rest;
    // the same of `last`.
    double ahead = 1;
    CallsUnderWay::Call first, rest, last_first, last_rest;
    const ResourceClasses::Busy* busy = nullptr;  // with all groups alike
    const ResourceClasses::Busy* own = nullptr;   // of a transfer: with those in step
  };

  void find_ways() {
    ResourceClasses classes;
    for (std::size_t r = 0; r < roles_.size(); ++r)
      for (const OpList& ops : roles_[r].program->streams)
        for (const Op& op : ops.distinct()) {
          const std::uint32_t g = communicates(op) ? roles_[r].group_of[op.group] : kNone;
          if (g == kNone || op.kind == Op::Kind::recv) continue;
          if (op.kind == Op::Kind::collective && op.launch != 0 && !is_first(op)) continue;
          Way& way = ways_[&op];
          op.kind == Op::Kind::send ? find_transfer(r, g, op, way) : find_collective(g, op, way);
          for (const ResourceClasses::Busy* busy : {way.busy, way.own})
            if (busy) classes.add(*busy);
        }
    classes.make();
    for (auto& [op, way] : ways_) {
      set_needs(classes, way);
      set_parts(way);
    }
    under_way_.emplace(classes.size());
  }

  static void add_need(CallsUnderWay::Part& part, std::uint32_t resource, Picoseconds time) {
    if (time <= 0) return;
    part.needs.push_back({resource, static_cast<double>(time) / static_cast<double>(part.alone)});
  }

  static CallsUnderWay::Call part_of(CallsUnderWay::Call call, double share) {
    for (CallsUnderWay::Part* part : {&call.own, &call.others})
      part->alone = std::llround(share * static_cast<double>(part->alone));
    return call;
  }

  void set_parts(Way& way) const {
    if (way.ahead == 1 || evenly_) return;
    way.first = part_of(way.call, way.ahead);
    way.rest = part_of(way.call, 1 - way.ahead);
    way.last_first = part_of(way.last, way.ahead);
    way.last_rest = part_of(way.last, 1 - way.ahead);
  }

  void set_needs(const ResourceClasses& classes, Way& way) const {
    if (!way.busy) return;
    CallsUnderWay::Call& call = way.call;
    ResourceClasses::Times others = classes.of(*way.busy);
    if (!way.own) {
      for (const auto& [resource, time] : others) add_need(call.own, resource, time);
      return;
    }
    const ResourceClasses::Times& own = classes.of(*way.own);
    for (auto& [resource, time] : others) {
      const auto mine = own.find(resource);
      const Picoseconds first = mine != own.end() ? mine->second : std::min(time, call.own.alone);
      add_need(call.own, resource, first);
      time -= first;
      call.others.alone = std::max(call.others.alone, time);
    }
    for (const auto& [resource, time] : others) add_need(call.others, resource, time);
    way.last = {{call.own.alone + call.others.alone, {}}, {}, !evenly_};
    for (const auto& [resource, time] : classes.of(*way.busy))
      add_need(way.last.own, resource, time);
  }

  bool inside_nodes(const Meeting& meeting) const {
    return std::all_of(meeting.placed.begin(), meeting.placed.end(), [&](std::uint32_t g) {
      const std::vector<WorldRank>& members = workload_.groups[g].members;
      return std::all_of(members.begin(), members.end(),
                         [&](WorldRank rank) { return node_of(rank) == node_of(members.front()); });
    });
  }

  void find_collective(std::uint32_t g, const Op& op, Way& way) {
    const Meeting& meeting = meetings_.at(g);
    Picoseconds& alone = way.call.own.alone;
    for (const std::uint32_t one : meeting.placed) {
      const std::vector<std::uint32_t> beside = groups_.sharing_nics(meeting.alike, one);
      alone =
          std::max(alone, times_.alone(spec_, workload_, one, beside, op, kNoRank, kNoRank).whole);
    }
    if (!on_network_ || meeting.inside_nodes) return;
    way.busy = &on_network_->busy(meeting.alike, calls_with(workload_, op), {});
    for (const auto& resource : *way.busy) alone = std::max(alone, resource.time);
  }

  void wake(const std::vector<std::size_t>& roles) {
    for (const std::size_t role : roles) wakes_[role] = true;
  }

  // Begins the op's call, for whose end these roles wait. Returns when it ends, for as long as the
  // step is estimated.
  const End* begin(const CallsUnderWay::Call& call, Picoseconds start,
                   const std::vector<std::size_t>& waiting) {
    End& end = ends_.emplace_back(End{kUnknown, &waiting});
    begin(call, start, end);
    return &end;
  }
  void begin(const CallsUnderWay::Call& call, Picoseconds start, End& end) {
    end.at = start + call.own.alone;
    if (!call.own.needs.empty()) under_way_->begin(call, start, end);
  }

  bool meet(std::size_t r, Stream& stream, const Op& op) {
    if (!roles_[r].meeting_of[op.group]) return true;
    Meeting& meeting = *roles_[r].meeting_of[op.group];
    After& worker = stream.first_free();
    if (worker.at() == kUnknown) return false;
    if (!stream.come) stream.call = meeting.begun[r]++;
    const std::size_t at = stream.call - meeting.first;
    while (meeting.calls.size() <= at) meeting.calls.emplace_back();
    Meeting::Call& call = meeting.calls[at];
    if (!stream.come) {
      stream.come = true;
      ++call.come;
      call.start = std::max({call.start, stream.time, worker.at()});
    }
    if (call.come < meeting.roles.size()) return false;
    if (!call.end) {
      wake(meeting.roles);
      // A launch takes its time once, at its first call in the communicator.
      const bool counted = op.launch != 0 && !is_first(op);
      call.end = counted ? &ends_.emplace_back(End{call.start})
                         : begin(ways_.at(&op).call, call.start, meeting.roles);
    }
    stream.time = call.start;
    worker = {call.end};
    ++call.ended;
    for (; !meeting.calls.empty() && meeting.calls.front().ended == meeting.roles.size();
         ++meeting.first)
      meeting.calls.pop_front();
    return true;
  }

  GroupRank peer_of(GroupRank own, const Op& op, std::uint32_t g) const {
    const auto size = static_cast<GroupRank>(workload_.groups[g].members.size());
    return ((own + op.peer) % size + size) % size;
  }

  Transfer& transfer_of(Channel& channel, std::size_t number) {
    while (channel.first + channel.transfers.size() <= number) channel.transfers.emplace_back();
    return channel.transfers[number - channel.first];
  }
  Channel& channel_of(std::uint16_t kind, std::size_t from, std::size_t to) {
    Channel& channel = on_the_way_[{kind, from, to}];
    if (channel.roles.empty()) channel.roles = {from, to};
    return channel;
  }

  // A sender without credits waits for its receiver. Flows of which it lacks some begin when both
  // have come; else messages for which it has credits leave before.
  bool transfer(std::size_t r, Stream& stream, const Op& op) {
    const std::uint32_t g = roles_[r].group_of[op.group];
    if (g == kNone) return true;
    const GroupRank other = peer_of(roles_[r].position[op.group], op, g);
    const std::size_t theirs = workload_.role_of[workload_.groups[g].members[other]];
    if (op.kind == Op::Kind::send)
      send(r, stream, ways_.at(&op), channel_of(op.group, r, theirs));
    else if (!receive(r, stream, channel_of(op.group, theirs, r)))
      return false;
    return true;
  }

  void send(std::size_t r, Stream& stream, const Way& way, Channel& channel) {
    Transfer& one = transfer_of(channel, channel.sent++);
    // Replicas that begin together are apart from the first transfer on for which they share NICs
    // or links; not where these are shared evenly.
    bool& apart = roles_[r].apart;
    const bool shared = way.call.others.alone > 0;
    const CallsUnderWay::Call& call = shared && !apart ? way.last : way.call;
    apart = one.apart = apart || (shared && !evenly_);
    one.end = &ends_.emplace_back(End{kUnknown, &channel.roles});
    one.tail = way.tail;
    const bool last = &call == &way.last;
    if (way.ahead == 1 || (one.come != kUnknown && one.come + way.tail <= stream.time)) {
      begin(call, stream.time, *one.end);
    } else {
      End& first = ends_.emplace_back(End{stream.time, &channel.roles});
      if (!evenly_) begin(last ? way.last_first : way.first, stream.time, first);
      one.call = evenly_ ? &call : last ? &way.last_rest : &way.rest;
      one.before = {&first};
      begin_late(one);
    }
    wake(channel.roles);
    if (way.sender > 0)
      std::fill(stream.workers.begin(), stream.workers.end(),
                After{one.end, way.sender - way.call.own.alone});
  }

  // Begins what waits for a receiver, which gives credits when it comes.
  void begin_late(Transfer& one) {
    if (!one.call || one.come == kUnknown || one.before.at() == kUnknown) return;
    const Picoseconds credits = one.come + (evenly_ ? 0 : one.tail);
    begin(*std::exchange(one.call, nullptr), std::max(one.before.at(), credits), *one.end);
  }

  bool receive(std::size_t r, Stream& stream, Channel& channel) {
    if (!stream.come) {
      stream.come = true;
      stream.call = channel.come++;
      transfer_of(channel, stream.call).come = stream.time;
      wake(channel.roles);
    }
    Transfer& one = transfer_of(channel, stream.call);
    begin_late(one);
    if (!one.end || one.end->at == kUnknown) return false;
    stream.time = std::max(stream.time, one.end->at + one.tail);
    roles_[r].apart = roles_[r].apart || one.apart;
    channel.transfers.pop_front();
    ++channel.first;
    return true;
  }

  const std::vector<std::uint32_t>& in_step(std::uint32_t group) {
    std::vector<std::uint32_t>& known = in_step_[group];
    if (known.empty()) known = groups_.in_step(group);
    return known;
  }

  // A ring has several members of a role, and is as slow as its slowest hop: one between nodes, or
  // one inside a node. Elsewhere there is only the hop from the followed rank.
  void find_transfer(std::size_t r, std::uint32_t g, const Op& send, Way& way) {
    const std::vector<WorldRank>& members = workload_.groups[g].members;
    const Meeting& meeting = meetings_.at(g);
    const GroupRank own = roles_[r].position[send.group];
    const auto role_at = [&](GroupRank position) { return workload_.role_of[members[position]]; };
    std::vector<std::pair<GroupRank, GroupRank>> hops;
    std::vector<GroupRank> receivers;
    for (GroupRank k = 0; k < std::ssize(members); ++k) {
      const auto from = static_cast<GroupRank>((own + k) % std::ssize(members));
      const GroupRank to = peer_of(from, send, g);
      if (role_at(from) != role_at(own) || role_at(to) != role_at(peer_of(own, send, g))) continue;
      hops.emplace_back(from, to);
      receivers.push_back(to);
    }
    Picoseconds whole = 0;
    for (const std::uint32_t one : meeting.placed) {
      const std::vector<WorldRank>& places = workload_.groups[one].members;
      const std::vector<std::uint32_t> beside = groups_.sharing_nics(in_step(one), one);
      bool seen[] = {false, false};
      for (const auto& [from, to] : hops) {
        if (std::exchange(seen[node_of(places[from]) == node_of(places[to])], true)) continue;
        const CallTimes::Time time = times_.alone(spec_, workload_, one, beside, send, from, to);
        whole = std::max(whole, time.whole);
        way.sender = std::max(way.sender, time.sender);
      }
    }
    Picoseconds& alone = way.call.own.alone;
    alone = way.sender;
    Op receive = send;
    receive.kind = Op::Kind::recv;
    receive.peer = -send.peer;
    if (on_network_ && !meeting.inside_nodes) {
      way.busy = &on_network_->busy(meeting.alike, {receive}, receivers);
      way.own = &on_network_->busy(in_step(g), {receive}, receivers);
      for (const auto& resource : *way.own) alone = std::max(alone, resource.time);
    }
    if (on_network_ && send.launch == 0)
      way.ahead = on_network_->ahead(g, receive, receivers.front());
    way.call.in_turn = !evenly_;
    way.tail = std::max<Picoseconds>(whole - alone, 0);
  }

  int node_of(WorldRank rank) const { return rank.value() / spec_.cluster.gpus_per_node; }

  CallTimes& times_;
  const JobSpec& spec_;
  const Workload& workload_;
  const bool evenly_;  // transfers share NICs at fair rates, not one after the other
  GroupsAlike groups_;
  std::optional<CallsOnNetwork> on_network_;
  std::vector<Role> roles_;
  std::map<std::uint32_t, Meeting> meetings_;  // by group
  std::unordered_map<const Op*, Way> ways_;    // of the followed programs
  std::optional<CallsUnderWay> under_way_;
  std::deque<End> ends_;     // of calls
  std::vector<bool> wakes_;  // by role: an op that had to wait may go on
  std::map<std::uint32_t, std::vector<std::uint32_t>> in_step_;  // by group, once asked for
  // By kind of group, sending and receiving role.
  std::map<std::tuple<std::uint16_t, std::size_t, std::size_t>, Channel> on_the_way_;
};

StepEstimate StepEstimator::estimate(const JobSpec& spec, const Workload& workload,
                                     Picoseconds enough) {
  const auto followed = [&](bool shares) {
    Followed ranks(times_, spec, workload, shares);
    ranks.follow();
    return ranks.result();
  };
  if (enough < kUnknown) {
    const StepEstimate alone = followed(false);
    if (alone.step >= enough) return alone;
  }
  return followed(true);
}

Workload in_steady_state(Workload workload) {
  for (Role& role : workload.roles)
    role.iterations.erase(role.iterations.begin(), std::prev(role.iterations.end()));
  workload.order.clear();
  workload.cycle = 1;
  return workload;
}

}  // namespace ghostrank
