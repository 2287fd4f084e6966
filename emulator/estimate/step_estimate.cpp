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

#include "emulator/shard/idle_call.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// Elements of a rank's whole buffer.
double buffer_of(const Workload& workload, const Op& op, double ranks) {
  const auto elements = static_cast<double>(elements_of(workload, op));
  switch (op.func) {
    case Func::all_gather:
    case Func::reduce_scatter:
    case Func::all_to_all:
    case Func::gather:
    case Func::scatter:
      return elements * ranks;  // a block for every rank
    case Func::all_to_all_v:
      return elements / ranks;
    default:
      return elements;
  }
}

struct Least {
  Picoseconds bytes = 0;    // while they pass the NICs
  Picoseconds latency = 0;  // of the messages that follow one another
  double chained = 0;       // how many of the bytes these messages have
};

// Least duration of a call: of a ring over the group's nodes, whose members on a node share its
// NICs (at most one each), or of an exchange, in which every member sends its own buffer. Groups
// `beside` it send as much over the NICs that they share. A ring leaves a node behind its last
// member, so messages that follow one another have that share of what each of its NICs sends.
Least least_of_call(const JobSpec& spec, const Workload& workload, const Group& group,
                    const std::vector<std::uint32_t>& beside, const Op& op) {
  const ClusterSpec& cluster = spec.cluster;
  const int gpus = cluster.gpus_per_node, node = group.members.front().value() / gpus;
  std::set<int> nics;
  const auto on_node = [&](const Group& one) {
    int members = 0;
    for (const WorldRank rank : one.members) {
      if (rank.value() / gpus != node) continue;
      nics.insert(rank.value() % gpus * cluster.nics_per_node / gpus);
      ++members;
    }
    return members;
  };
  const int here = on_node(group);
  double groups = 1;
  for (const std::uint32_t g : beside) groups += on_node(workload.groups[g]) > 0 ? 1 : 0;
  const auto ranks = static_cast<double>(group.members.size());
  const bool exchanges = op.func == Func::all_to_all || op.func == Func::all_to_all_v;
  const double rounds = op.func == Func::all_reduce ? 2 : 1;
  const double bytes = rounds * (ranks - 1) / ranks * buffer_of(workload, op, ranks) *
                       bytes_of(op.dtype) * (exchanges ? here : 1) * groups;
  const double rate = cluster.nic.rate_bps * static_cast<double>(nics.size());
  const double leaves = exchanges ? 1 : 1. / here;  // of the hops
  const double hops = exchanges ? 1 : rounds * (ranks - 1);
  const double hop = leaves * static_cast<double>(cluster.nic.latency) +
                     (1 - leaves) * static_cast<double>(cluster.intra_node.latency);
  return {rate > 0 ? std::llround(bytes * 8 / rate * 1e12) : 0, std::llround(hops * hop), leaves};
}

// Least duration of the op with the calls of its launch: their bytes share the NICs, while each
// waits for its own messages.
Picoseconds bytes_at_least(const JobSpec& spec, const Workload& workload, const Group& group,
                           const std::vector<std::uint32_t>& beside, const Op& op) {
  Least all;
  for (const Op& call : calls_with(workload, op)) {
    const Least one = least_of_call(spec, workload, group, beside, call);
    all.bytes += one.bytes;
    all.latency = std::max(all.latency, one.latency);
    all.chained = std::max(all.chained, one.chained);
  }
  const auto chained = std::llround(static_cast<double>(all.bytes) * all.chained);
  return std::max<Picoseconds>(all.bytes, chained + all.latency);
}

// The group, then the others of its kind that make its calls when it does, because their members
// have the same roles.
std::vector<std::uint32_t> alike(const Workload& workload, std::uint32_t group) {
  std::vector<std::uint32_t> out{group};
  const std::vector<WorldRank>& members = workload.groups[group].members;
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    const Group& other = workload.groups[g];
    if (g == group || other.kind != workload.groups[group].kind) continue;
    if (std::equal(
            members.begin(), members.end(), other.members.begin(), other.members.end(),
            [&](WorldRank a, WorldRank b) { return workload.role_of[a] == workload.role_of[b]; }))
      out.push_back(g);
  }
  return out;
}

// Of groups that are alike, those that have members on the first one's nodes, without it. None
// where every GPU has a NIC of its own, or the group's messages stay inside a node.
std::vector<std::uint32_t> sharing_nics(const ClusterSpec& cluster, const Workload& workload,
                                        std::vector<std::uint32_t> groups) {
  const int gpus = cluster.gpus_per_node;
  if (cluster.nics_per_node >= gpus) return {};
  std::set<int> nodes;
  for (const WorldRank rank : workload.groups[groups.front()].members)
    nodes.insert(rank.value() / gpus);
  if (nodes.size() == 1) return {};
  groups.erase(groups.begin());
  std::erase_if(groups, [&](std::uint32_t g) {
    const std::vector<WorldRank>& members = workload.groups[g].members;
    return std::none_of(members.begin(), members.end(),
                        [&](WorldRank rank) { return nodes.contains(rank.value() / gpus); });
  });
  return groups;
}

}  // namespace

auto StepEstimator::CallKey::tied() const {
  return std::tie(group, members, locations, op.kind, op.func, op.dtype, op.floats, op.peer, counts,
                  op.reduction, op.within, op.count, source, target);
}
bool StepEstimator::CallKey::operator<(const CallKey& other) const { return tied() < other.tied(); }

StepEstimator::Time StepEstimator::alone(const JobSpec& spec, const Workload& workload,
                                         std::uint32_t group,
                                         const std::vector<std::uint32_t>& beside, const Op& op,
                                         GroupRank source, GroupRank target) {
  const Group& members = workload.groups[group];
  const int gpus = spec.cluster.gpus_per_node;
  const int first = members.members.front().value() / gpus;
  const bool one_node = std::all_of(members.members.begin(), members.members.end(),
                                    [&](WorldRank r) { return r.value() / gpus == first; });
  const std::ptrdiff_t own = std::ssize(members.members), all = own * (1 + std::ssize(beside));
  if (source == kNoRank && !one_node && (own > kMostPlayed || all > kMostSharing))
    return {bytes_at_least(spec, workload, members, beside, op), 0};
  if (op.launch != 0 && source == kNoRank)
    return {play_alone(spec, workload, group, op, kNoRank, kNoRank, nullptr, {}, beside).duration,
            0};
  CallKey key{workload.group_names[members.kind], 0, {}, {}, op, source, target};
  if (is_ragged(op.func)) key.counts = *workload.counts[op.counts];
  const auto locate = [&](const Group& one) {
    for (const WorldRank rank : one.members) {
      key.locations.push_back(rank.value() / gpus - first);
      key.locations.push_back(rank.value() % gpus);
    }
  };
  key.members = members.members.size();
  locate(members);
  for (const std::uint32_t g : beside) locate(workload.groups[g]);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const IdleCall idle = play_alone(spec, workload, group, op, source, target, nullptr, {}, beside);
  return known_[std::move(key)] = {idle.duration, source == kNoRank ? 0 : idle.end.front()};
}

// The ranks that are followed, one of every role, and how far each has come.
struct StepEstimator::Followed {
  Followed(StepEstimator& times, const JobSpec& spec, const Workload& workload)
      : times_(times), spec_(spec), workload_(workload), roles_(workload.roles.size()) {
    for (int rank = workload.ranks; rank-- > 0;)
      roles_[workload.role_of[WorldRank(rank)]].rank = WorldRank(rank);
    for (Role& role : roles_) role.group_of.assign(workload.group_names.size(), kNone);
    for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
      const Group& group = workload.groups[g];
      for (GroupRank i = 0; i < std::ssize(group.members); ++i) {
        Role& role = roles_[workload.role_of[group.members[i]]];
        if (role.rank != group.members[i]) continue;
        role.group_of[group.kind] = g;
        ++meetings_[g].members;
      }
    }
    if (spec.cluster.topology.kind != TopologySpec::Kind::nonblocking)
      on_links_.emplace(spec, workload);
    for (auto& [g, meeting] : meetings_) {
      meeting.alike = alike(workload, g);
      meeting.beside = sharing_nics(spec.cluster, workload, meeting.alike);
    }
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      const Program& program = workload.roles[r].iterations.back();
      roles_[r].program = &program;
      for (std::size_t stream = 0; stream < program.streams.size(); ++stream)
        roles_[r].streams.push_back({std::vector<Picoseconds>(workers(program, stream))});
      roles_[r].events.resize(program.events);
      if (carries_over(program))
        throw Error("a step whose streams outlive it is played: it cannot be estimated");
    }
  }

  void follow() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < roles_.size(); ++r)
        for (std::size_t s = 0; s < roles_[r].streams.size(); ++s)
          while (step(r, s)) moved = true;
    }
    for (const Role& role : roles_)
      for (std::size_t s = 0; s < role.streams.size(); ++s)
        if (role.streams[s].next < role.program->streams[s].size())
          throw Error("the step cannot be estimated: role " +
                      workload_.roles[&role - roles_.data()].name +
                      " waits for a call that nobody else makes");
  }

  StepEstimate result() const {
    StepEstimate out;
    for (const Role& role : roles_) {
      out.compute = std::max(out.compute, role.compute);
      for (const Stream& stream : role.streams) out.step = std::max(out.step, stream.end());
    }
    return out;
  }

 private:
  struct Stream {
    std::vector<Picoseconds> workers;  // when each has ended its last call
    std::size_t next = 0;              // op
    Picoseconds time = 0;              // when a call may begin, if a worker is free
    bool come = false;                 // it has reached its next call
    std::size_t call = 0;              // that call's number in its communicator

    // When all ops so far have ended.
    Picoseconds end() const {
      return std::max(time, *std::max_element(workers.begin(), workers.end()));
    }
    Picoseconds& first_free() { return *std::min_element(workers.begin(), workers.end()); }
  };
  struct Role {
    WorldRank rank;
    const Program* program = nullptr;
    std::vector<std::uint32_t> group_of;  // by kind
    std::vector<Stream> streams;
    std::vector<std::queue<Picoseconds>> events;  // records that no wait has taken
    Picoseconds compute = 0;
  };
  // The calls of a communicator that some followed member has not ended, in order: how many members
  // have come to each and ended it, and when the last of them came. The streams of a member come to
  // one call after the other.
  struct Meeting {
    int members = 0;                           // that are followed
    std::vector<std::uint32_t> alike;          // it and those that make the same calls
    std::vector<std::uint32_t> beside;         // those of them that make them over its NICs
    std::map<std::size_t, std::size_t> begun;  // by role: calls to which it has come
    struct Call {
      int come = 0, ended = 0;
      Picoseconds start = 0;
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
    if (op.kind != Op::Kind::collective && op.kind != Op::Kind::wait) stream.time = stream.end();
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

  bool meet(std::size_t r, Stream& stream, const Op& op) {
    const std::uint32_t g = roles_[r].group_of[op.group];
    if (g == kNone) return true;
    Meeting& meeting = meetings_[g];
    if (!stream.come) stream.call = meeting.begun[r]++;
    const std::size_t at = stream.call - meeting.first;
    while (meeting.calls.size() <= at) meeting.calls.emplace_back();
    Meeting::Call& call = meeting.calls[at];
    if (!stream.come) {
      stream.come = true;
      ++call.come;
      call.start = std::max({call.start, stream.time, stream.first_free()});
    }
    if (call.come < meeting.members) return false;
    // A launch takes its time once, at its first call in the communicator.
    const bool counted = op.launch != 0 && !is_first(op);
    stream.time = call.start;
    Picoseconds& worker = stream.first_free();
    worker = call.start;
    if (!counted) {
      const Time time = times_.alone(spec_, workload_, g, meeting.beside, op, kNoRank, kNoRank);
      worker += std::max(time.whole, on_links(meeting, calls_with(workload_, op), kNoRank));
    }
    ++call.ended;
    for (; !meeting.calls.empty() && meeting.calls.front().ended == meeting.members;
         ++meeting.first)
      meeting.calls.pop_front();
    return true;
  }

  // How long the links need at least for calls that all groups alike make at the same time.
  Picoseconds on_links(const Meeting& meeting, const std::vector<Op>& calls, GroupRank receiver) {
    return on_links_ ? on_links_->busiest(meeting.alike, calls, receiver) : 0;
  }

  // The sender never waits: a message that the receiver has not asked for yet is buffered.
  bool transfer(std::size_t r, Stream& stream, const Op& op) {
    const std::uint32_t g = roles_[r].group_of[op.group];
    if (g == kNone) return true;
    const std::vector<WorldRank>& members = workload_.groups[g].members;
    const auto size = static_cast<GroupRank>(members.size());
    const auto own = static_cast<GroupRank>(
        std::find(members.begin(), members.end(), roles_[r].rank) - members.begin());
    const GroupRank other = ((own + op.peer) % size + size) % size;
    const std::size_t theirs = workload_.role_of[members[other]];
    if (op.kind == Op::Kind::send) {
      const auto [known, fresh] = sends_.try_emplace(&op);
      if (fresh) known->second = slowest_hop(g, op, own, theirs);
      under_way_[{op.group, r, theirs}].push_back(stream.time + known->second.whole);
      stream.time += known->second.sender;
      return true;
    }
    std::deque<Picoseconds>& arrivals = under_way_[{op.group, theirs, r}];
    if (arrivals.empty()) return false;
    stream.time = std::max(stream.time, arrivals.front());
    arrivals.pop_front();
    return true;
  }

  // A ring has several members of a role, and is as slow as its slowest hop: one between nodes, or
  // one inside a node. Elsewhere there is only the hop from `own`.
  Time slowest_hop(std::uint32_t g, const Op& send, GroupRank own, std::size_t theirs) {
    const std::vector<WorldRank>& members = workload_.groups[g].members;
    const Meeting& meeting = meetings_.at(g);
    const auto size = static_cast<GroupRank>(members.size());
    Op receive = send;
    receive.kind = Op::Kind::recv;
    receive.peer = -send.peer;
    Time slowest;
    bool seen[] = {false, false};
    for (GroupRank k = 0; k < size; ++k) {
      const GroupRank from = (own + k) % size, to = ((from + send.peer) % size + size) % size;
      if (workload_.role_of[members[from]] != workload_.role_of[members[own]] ||
          workload_.role_of[members[to]] != theirs ||
          std::exchange(seen[node_of(members[from]) == node_of(members[to])], true))
        continue;
      const Time time = times_.alone(spec_, workload_, g, meeting.beside, send, from, to);
      slowest.whole = std::max({slowest.whole, time.whole, on_links(meeting, {receive}, to)});
      slowest.sender = std::max(slowest.sender, time.sender);
    }
    return slowest;
  }

  int node_of(WorldRank rank) const { return rank.value() / spec_.cluster.gpus_per_node; }

  StepEstimator& times_;
  const JobSpec& spec_;
  const Workload& workload_;
  std::optional<CallsOnLinks> on_links_;  // empty: no links are modelled
  std::vector<Role> roles_;
  std::map<std::uint32_t, Meeting> meetings_;  // by group
  std::unordered_map<const Op*, Time> sends_;  // of the followed programs
  // Arrivals of transfers, by kind of group, sending and receiving role.
  std::map<std::tuple<std::uint16_t, std::size_t, std::size_t>, std::deque<Picoseconds>> under_way_;
};

StepEstimate StepEstimator::estimate(const JobSpec& spec, const Workload& workload) {
  Followed followed(*this, spec, workload);
  followed.follow();
  return followed.result();
}

Workload in_steady_state(Workload workload) {
  for (Role& role : workload.roles)
    role.iterations.erase(role.iterations.begin(), std::prev(role.iterations.end()));
  workload.order.clear();
  workload.cycle = 1;
  return workload;
}

}  // namespace ghostrank
