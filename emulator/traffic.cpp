#include "emulator/traffic.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "emulator/call_traffic.h"
#include "emulator/cluster.h"
#include "emulator/ledger.h"
#include "emulator/network.h"
#include "emulator/schedules.h"
#include "emulator/wire.h"

namespace ghostrank {
namespace {

class Planner {
 public:
  Planner(const JobSpec& spec, const Workload& workload,
          std::set<Connection>* connections = nullptr)
      : connections_(connections),
        workload_(workload),
        models_nodes_(spec.fabric.inside_node == InsideNode::model && !spec.run.verify),
        cluster_(spec, workload, 1),
        schedules_(spec, workload, cluster_),
        nic_(cluster_.topology().own()),
        intra_latency_(spec.cluster.intra_node.latency),
        egress_(static_cast<std::size_t>(cluster_.nics())),
        ingress_(egress_.size()) {
    for (const auto& row : schedules_.rows()) {
      CollectiveTraffic t;
      t.op = row.op;
      t.group = row.group;
      t.algorithm = row.algorithm;
      plan_.collectives.push_back(t);
    }
  }

  TrafficPlan plan(int iteration) {
    count_ops(iteration);
    for (const auto& [call, times] : calls_) add_call(call, times);
    finish();
    return std::move(plan_);
  }

 private:
  // A call that one group makes, seen by its member at position 0 (both ends of a transfer: the
  // receiver).
  struct Call {
    std::uint32_t group;
    Func func;
    std::uint32_t element_bytes;
    std::uint64_t count;  // of a v-variant: the index of its counts
    Rank root, from;      // `from`: source of a transfer, with root its target; else kNoRank
    auto operator<=>(const Call&) const = default;
  };

  void count_ops(int iteration) {
    for (Rank rank = 0; rank < workload_.ranks; ++rank) {
      const Role& role = workload_.roles[workload_.role_of[static_cast<std::size_t>(rank)]];
      const auto last = static_cast<int>(role.iterations.size()) - 1;
      const Program& program = role.iterations[static_cast<std::size_t>(std::min(iteration, last))];
      for (std::size_t s = 0; s < program.streams.size(); ++s) {
        Picoseconds compute = 0;
        for (const Op& op : program.streams[s]) {
          if (op.kind == Op::Kind::compute) compute += op.duration;
          if (op.kind == Op::Kind::collective || op.kind == Op::Kind::recv) count_op(rank, op);
        }
        if (s == 0) plan_.compute_seconds = std::max(plan_.compute_seconds, seconds(compute));
      }
    }
  }

  void count_op(Rank rank, const Op& op) {
    const Seat& seat = cluster_.seat(rank, op.group);
    if (seat.group < 0) return;
    const auto group = static_cast<std::uint32_t>(seat.group);
    if (op.kind == Op::Kind::collective) {
      if (seat.position != 0) return;
      const std::uint64_t count = is_ragged(op.func) ? op.counts : op.count;
      const Call call{group, op.func, bytes_of(op.dtype), count, op.peer, kNoRank};
      if (!ops_.contains(call)) ops_[call] = &op;
      ++calls_[call];
      return;
    }
    const auto size = static_cast<int>(workload_.groups[group].members.size());
    const Rank from = ((seat.position + op.peer) % size + size) % size;
    ++calls_[{group, Func::send_recv, bytes_of(op.dtype), op.count, seat.position, from}];
  }

  const CallTraffic& traffic_of(const Call& call) {
    const auto key = std::make_tuple(cluster_.shape(call.group), call.func, call.element_bytes,
                                     call.count, call.root);
    auto& known = walked_[key];
    if (!known)
      known =
          std::make_unique<CallTraffic>(walk(*schedules_.get(call.group, *ops_.at(call)).schedule));
    return *known;
  }

  void add_call(const Call& call, std::uint64_t times) {
    const auto kind = workload_.groups[call.group].kind;
    const std::uint16_t index = call.from != kNoRank
                                    ? schedules_.transfer_row(kind)
                                    : schedules_.get(call.group, *ops_.at(call)).row;
    CollectiveTraffic& row = plan_.collectives[index];
    row.calls += times;
    const double chain = chain_seconds(call);
    plan_.latency_seconds = std::max(plan_.latency_seconds, chain);
    touched_.clear();
    const std::uint64_t inside_before = plan_.intra_messages, sent_before = row.wire_messages;
    if (const Algorithm* scheme = scheme_of(call)) {
      add_notes(row, call, *scheme, times);
    } else if (call.from != kNoRank) {
      const std::uint64_t bytes = call.count * call.element_bytes;
      row.buffer_bytes += times * bytes;
      const NicPair own{place(call, call.from).nic, place(call, call.root).nic};
      add_edge(row, call, {call.from, call.root, 0, bytes, 1}, own, times);
    } else {
      const CallTraffic& traffic = traffic_of(call);
      row.buffer_bytes += times * traffic.call_bytes;
      const Schedule& schedule = *schedules_.get(call.group, *ops_.at(call)).schedule;
      const auto& members = workload_.groups[call.group].members;
      for (const auto& edge : traffic.edges)
        add_edge(row, call, edge,
                 nics_of(cluster_, schedule, members, edge.from, edge.to, edge.channel), times);
      if (schedule.flow().credits > 0 || schedule.flow().posting.needed())
        row.wire_credits += row.wire_messages - sent_before;
    }
    const std::uint64_t members = workload_.groups[call.group].members.size();
    const bool one_delay = models_nodes_ && call.from == kNoRank && members > 1 &&
                           cluster_.inside_node(call.group) && !scheme_of(call);
    plan_.work_inside_nodes += one_delay ? times * members : plan_.intra_messages - inside_before;
    std::uint64_t busiest = 0;
    for (const auto& [nic, bytes] : touched_) busiest = std::max(busiest, bytes);
    GroupSeconds& group = group_seconds_[{index, call.group}];
    const double serial = seconds(nic_.serialise(busiest));
    group.serial += serial * static_cast<double>(times);
    group.chained += std::max(serial, chain) * static_cast<double>(times);
    row.seconds_at_least = std::max(row.seconds_at_least, group.serial);
    row.chained_seconds = std::max(row.chained_seconds, group.chained);
  }

  // Null: the call has a schedule.
  const Algorithm* scheme_of(const Call& call) const {
    return call.from == kNoRank ? schedules_.get(call.group, *ops_.at(call)).scheme : nullptr;
  }

  // What the agents of a scheme send where nothing is lost.
  void add_notes(CollectiveTraffic& row, const Call& call, const Algorithm& scheme,
                 std::uint64_t times) {
    const auto index = static_cast<std::uint32_t>(cluster_.scheme(call.group, scheme));
    const SchemeUse& use = cluster_.schemes()[index];
    const Op& op = *ops_.at(call);
    const Collective& c = schedules_.get(call.group, op).schedule->collective();
    row.buffer_bytes += times * call_elements(c) * c.element_bytes;
    row.exact &= use.ends->exact();
    for (const Ends::Edge& edge : use.ends->traffic({0, c, op.dtype})) {
      const Rank from = cluster_.party(use, edge.from), to = cluster_.party(use, edge.to);
      const NicPair nics{cluster_.place(from).nic, cluster_.place(to).nic};
      add_between(row, from, to, nics, edge.bytes, edge.messages, times);
      plan_.sends_packets |=
          edge.carriage == Carriage::packet && cluster_.place(from).node != cluster_.place(to).node;
      if (connections_) connections_->insert({index | kSchemeFlows, 0, from, to, nics});
    }
  }

  // However small, a call lasts as long as its longest chain of messages takes.
  double chain_seconds(const Call& call) {
    int steps = 1;
    if (call.from == kNoRank) {
      const auto& closed_form = schedules_.algorithm(call.group, *ops_.at(call)).cost;
      const auto size = static_cast<int>(workload_.groups[call.group].members.size());
      const Cost cost = closed_form ? closed_form(collective_of(workload_, *ops_.at(call), size))
                                    : Cost{.steps = 1};
      if (!cost.most_steps) steps = cost.steps;
    }
    const auto& node_of = cluster_.nodes_of_shape(cluster_.shape(call.group));
    const std::set<std::int32_t> nodes(node_of.begin(), node_of.end());
    const Picoseconds hop = nodes.size() == node_of.size() ? nic_.latency
                            : nodes.size() == 1            ? intra_latency_
                                                           : std::min(nic_.latency, intra_latency_);
    return steps * seconds(hop);
  }

  const Place& place(const Call& call, Rank member) const {
    return cluster_.place(workload_.groups[call.group].members[static_cast<std::size_t>(member)]);
  }

  void add_edge(CollectiveTraffic& row, const Call& call, const CallTraffic::Edge& edge,
                const NicPair& nics, std::uint64_t times) {
    if (connections_) {
      const auto& members = workload_.groups[call.group].members;
      const std::uint32_t pair = call.from == kNoRank ? 0 : kPointToPoint;
      connections_->insert({call.group | pair, static_cast<std::uint16_t>(edge.channel),
                            members[static_cast<std::size_t>(edge.from)],
                            members[static_cast<std::size_t>(edge.to)], nics});
    }
    const auto& members = workload_.groups[call.group].members;
    add_between(row, members[static_cast<std::size_t>(edge.from)],
                members[static_cast<std::size_t>(edge.to)], nics, edge.bytes, edge.messages, times);
  }

  void add_between(CollectiveTraffic& row, Rank source, Rank target, const NicPair& nics,
                   std::uint64_t call_bytes, std::uint64_t call_messages, std::uint64_t times) {
    const Place &from = cluster_.place(source), &to = cluster_.place(target);
    const std::uint64_t bytes = call_bytes * times, messages = call_messages * times;
    row.bytes += bytes;
    row.messages += messages;
    if (from.node == to.node) {
      plan_.intra_bytes += bytes;
      plan_.intra_messages += messages;
      return;
    }
    row.wire_bytes += bytes;
    row.wire_messages += messages;
    egress_[static_cast<std::size_t>(nics.source)] += bytes;
    ingress_[static_cast<std::size_t>(nics.target)] += bytes;
    touched_[nics.source] += call_bytes;
    LedgerCell& pair = pairs_[{nics.source, nics.target}];
    pair.bytes += bytes;
    pair.messages += messages;
  }

  void finish() {
    for (const auto& row : plan_.collectives) {
      plan_.wire_bytes += row.wire_bytes;
      plan_.wire_messages += row.wire_messages;
    }
    for (const auto& [pair, sum] : pairs_) {
      plan_.pairs.push_back({pair.first, pair.second, static_cast<double>(sum.bytes),
                             static_cast<double>(sum.messages)});
    }
    for (std::size_t i = 0; i < egress_.size(); ++i) {
      plan_.busiest_nic_bytes = std::max({plan_.busiest_nic_bytes, egress_[i], ingress_[i]});
    }
    plan_.step_seconds_at_least =
        std::max({plan_.compute_seconds, seconds(nic_.serialise(plan_.busiest_nic_bytes)),
                  plan_.latency_seconds});
  }

  std::set<Connection>* const connections_;  // null: not asked for
  const Workload& workload_;
  const bool models_nodes_;
  Cluster cluster_;
  Schedules schedules_;
  LinkSpeed nic_;
  Picoseconds intra_latency_;
  TrafficPlan plan_;
  std::map<Call, std::uint64_t> calls_;
  std::map<Call, const Op*> ops_;
  std::map<std::tuple<std::uint32_t, Func, std::uint32_t, std::uint64_t, Rank>,
           std::unique_ptr<CallTraffic>>
      walked_;
  std::map<std::pair<int, int>, LedgerCell> pairs_;
  std::map<int, std::uint64_t> touched_;
  struct GroupSeconds {
    double serial = 0, chained = 0;
  };
  std::map<std::pair<std::uint16_t, std::uint32_t>, GroupSeconds> group_seconds_;  // by row, group
  std::vector<std::uint64_t> egress_, ingress_;
};

}  // namespace

TrafficPlan plan_traffic(const JobSpec& spec, const Workload& workload, int iteration) {
  return Planner(spec, workload).plan(iteration);
}

std::vector<Connection> plan_connections(const JobSpec& spec, const Workload& workload) {
  std::set<Connection> all;
  for (int i = 0; i < distinct_iterations(workload); ++i) Planner(spec, workload, &all).plan(i);
  return {all.begin(), all.end()};
}

bool sends_packets(const JobSpec& spec, const Workload& workload) {
  for (int i = 0; i < distinct_iterations(workload); ++i)
    if (plan_traffic(spec, workload, i).sends_packets) return true;
  return false;
}

int distinct_iterations(const Workload& workload) {
  std::size_t count = 1;
  for (const Role& role : workload.roles) count = std::max(count, role.iterations.size());
  return static_cast<int>(count);
}

void check_schedules(const JobSpec& spec, const Workload& workload) {
  const Cluster cluster(spec, workload, 1);
  Schedules schedules(spec, workload, cluster);
  for (Rank rank = 0; rank < workload.ranks; ++rank) {
    const Role& role = workload.roles[workload.role_of[static_cast<std::size_t>(rank)]];
    for (const Program& program : role.iterations) {
      for (const auto& stream : program.streams) {
        for (const Op& op : stream) {
          if (op.kind != Op::Kind::collective) continue;
          const Seat& seat = cluster.seat(rank, op.group);
          if (seat.position == 0) schedules.get(static_cast<std::uint32_t>(seat.group), op);
        }
      }
    }
  }
}

}  // namespace ghostrank
