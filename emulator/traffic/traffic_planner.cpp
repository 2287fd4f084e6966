#include "emulator/traffic/traffic_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ghostrank {
namespace {

// Of a channel: above it, a plan counts one message for its calls' longest chain.
constexpr std::size_t kMostPlannedSteps = 3'000'000;

struct OpTimes {
  const Op* op;
  std::uint64_t times;
};

// In the order of first appearance.
std::vector<OpTimes> distinct_ops(const OpList& ops) {
  const std::vector<std::uint64_t> times = ops.times();
  std::vector<OpTimes> distinct;
  for (std::size_t i = 0; i < times.size(); ++i) distinct.push_back({&ops.distinct()[i], times[i]});
  return distinct;
}

// Notes of one sender and number (Edge::copies).
struct Copies {
  std::uint64_t egress = 0;  // bytes that take the sender's NIC
  int receivers = 0;         // on other nodes
  WayOfCopies way{};
};

}  // namespace

TrafficPlanner::TrafficPlanner(const JobSpec& spec, const Workload& workload,
                               std::set<Connection>* connections)
    : connections_(connections),
      workload_(workload),
      spec_(spec),
      models_nodes_(spec.fabric.inside_node == InsideNode::model && !spec.run.verify),
      copies_(!is_network(spec.fabric.kind)),
      cluster_(spec, workload, 1),
      schedules_(spec, workload, cluster_),
      nic_(cluster_.topology().own()),
      intra_latency_(spec.cluster.intra_node.latency),
      links_(cluster_),
      egress_(cluster_.nics()),
      ingress_(egress_.size()) {
  for (const auto& row : schedules_.rows()) {
    CollectiveTraffic t;
    t.op = row.op;
    t.group = row.group;
    t.algorithm = row.algorithm;
    plan_.collectives.push_back(t);
  }
}

const std::vector<CallsOnNetwork::Busy>& TrafficPlanner::busy(
    const std::vector<std::uint32_t>& groups, const std::vector<Op>& calls,
    const std::vector<GroupRank>& receivers) {
  const auto count_of = [&](std::uint32_t group) {
    const std::vector<WorldRank>& members = workload_.groups[group].members;
    for (const Op& op : calls) {
      if (op.kind == Op::Kind::collective) count_op(members.front(), op, 1);
      for (const GroupRank receiver : receivers)
        if (op.kind == Op::Kind::recv) count_op(members[receiver], op, 1);
    }
  };
  count_of(groups.front());
  const auto [known, is_new] = busy_.try_emplace({groups.size(), calls_});
  if (is_new) {
    for (std::size_t i = 1; i < groups.size(); ++i) count_of(groups[i]);
    for (const auto& [call, times] : calls_) occupy(call);
    known->second = take_busy();
  }
  calls_.clear();
  ops_.clear();  // the caller's ops end with this call
  return known->second;
}

double TrafficPlanner::ahead(std::uint32_t group, const Op& receive, GroupRank receiver) {
  count_op(workload_.groups[group].members[receiver], receive, 1);
  const Call call = calls_.begin()->first;
  std::uint64_t most = 0;  // messages of a channel
  for (const CallTraffic::Edge& edge : walked(call).traffic.edges)
    most = std::max<std::uint64_t>(most, edge.messages);
  const std::uint32_t credits = schedule_of(call)->flow_control().credits;
  calls_.clear();
  ops_.clear();
  return credits == 0 || most <= credits ? 1
                                         : static_cast<double>(credits) / static_cast<double>(most);
}

TrafficPlan TrafficPlanner::counted(const std::map<int, std::uint64_t>& iterations) {
  std::uint64_t count = 0;
  for (const auto& [iteration, times] : iterations) {
    count_ops(iteration, times);
    double latency = 0;
    note_transfers();
    for (const auto& [call, in_one] : std::exchange(calls_, {}))
      latency = std::max(latency, add_call(call, in_one * times));
    plan_.latency_seconds += latency * static_cast<double>(times);
    count += times;
  }
  finish(count);
  return std::move(plan_);
}

void TrafficPlanner::count_ops(int iteration, std::uint64_t times) {
  double longest = 0;
  std::vector<std::vector<OpTimes>> of_role;
  for (const Role& role : workload_.roles) {
    std::vector<OpTimes>& calls = of_role.emplace_back();
    const auto last = static_cast<int>(role.iterations.size()) - 1;
    if (last < 0) continue;  // no rank has this role
    const Program& program = role.iterations[std::min(iteration, last)];
    for (std::size_t s = 0; s < program.streams.size(); ++s) {
      Picoseconds compute = 0;
      for (const OpTimes& t : distinct_ops(program.streams[s])) {
        const Op::Kind kind = t.op->kind;
        if (kind == Op::Kind::compute)
          compute += t.op->duration * static_cast<Picoseconds>(t.times);
        if (kind == Op::Kind::collective || kind == Op::Kind::recv) calls.push_back(t);
      }
      if (s == 0) longest = std::max(longest, seconds(compute));
    }
  }
  plan_.compute_seconds += longest * static_cast<double>(times);
  for (const WorldRank rank : each<WorldRank>(workload_.ranks))
    for (const OpTimes& t : of_role[workload_.role_of[rank]]) count_op(rank, *t.op, t.times);
}

void TrafficPlanner::count_op(WorldRank rank, const Op& op, std::uint64_t times) {
  const Membership& membership = cluster_.membership(rank, op.group);
  if (!membership.taken()) return;
  const std::uint32_t group = membership.group;
  if (op.kind == Op::Kind::collective) {
    if (membership.position != 0) return;
    const std::uint64_t count = is_ragged(op.func) ? op.counts : op.count;
    const bool sparse = settings_of(spec_, workload_, op.group).tensors && op.tensor != 0;
    const bool named = schedules_.get(group, op).scheme || layout_of(workload_, op);
    const Call call{group,
                    op.func,
                    bytes_of(op.dtype),
                    count,
                    op.peer,
                    kNoRank,
                    sparse,
                    reduces(op.func) ? op.reduction : Reduction::sum,
                    has_floats(op),
                    0,
                    named ? op.tensor : 0,
                    op.launch,
                    op.launch_index};
    if (!ops_.contains(call)) ops_[call] = &op;
    calls_[call] += times;
    return;
  }
  const auto size = static_cast<int>(workload_.groups[group].members.size());
  const GroupRank from = ((membership.position + op.peer) % size + size) % size;
  const Call call{group,
                  Func::send_recv,
                  bytes_of(op.dtype),
                  op.count,
                  from,
                  membership.position,
                  false,
                  Reduction::sum,
                  has_floats(op),
                  schedules_.pair_of(group, op, from, membership.position),
                  0};
  if (!ops_.contains(call)) ops_[call] = &op;
  calls_[call] += times;
}

void TrafficPlanner::occupy(const Call& call) {
  if (const Algorithm* scheme = scheme_of(call)) {
    const auto& play = schedules_.get(call.group, *ops_.at(call));
    return add_notes(plan_.collectives[play.row], call, *scheme, 1);
  }
  const std::shared_ptr<const Schedule> schedule = schedule_of(call);
  const auto& members = workload_.groups[call.group].members;
  const std::uint32_t pair = call.target == kNoRank ? 0 : kPointToPoint;
  for (const CallTraffic::Edge& edge : walked(call).traffic.edges) {
    const WorldRank from = members[edge.from], to = members[edge.to];
    if (cluster_.location(from).node == cluster_.location(to).node) continue;
    const NicPair nics = nics_of(cluster_, *schedule, members, edge.from, edge.to, edge.channel);
    egress_[nics.source] += edge.bytes;
    ingress_[nics.target] += edge.bytes;
    links_.add_calls({call.group | pair, static_cast<std::uint16_t>(edge.channel), from, to}, nics,
                     edge, 1);
  }
}

std::vector<CallsOnNetwork::Busy> TrafficPlanner::take_busy() {
  std::vector<CallsOnNetwork::Busy> out;
  std::uint32_t resource = 0;
  for (auto* bytes : {&egress_, &ingress_})
    for (const Nic nic : bytes->keys()) {
      const std::uint64_t sent = std::exchange((*bytes)[nic], 0);
      const Picoseconds time = cluster_.topology().nic(nic).serialise(sent);
      if (time > 0) out.push_back({resource, time});
      ++resource;
    }
  for (LinkCount& link : links_.links()) {
    const Picoseconds time = std::exchange(link, {}).busy;
    if (time > 0) out.push_back({resource, time});
    ++resource;
  }
  return out;
}

TrafficPlanner::Walked& TrafficPlanner::walked(const Call& call) {
  Call of_layout = call;  // groups of one kind and layout play the same
  of_layout.group = cluster_.layout(call.group);
  of_layout.sparse = false;
  auto& known = walked_[{workload_.groups[call.group].kind, of_layout}];
  if (!known)
    known = std::make_unique<Walked>(
        Walked{walk(*schedule_of(call), cluster_.topology().queue_pairs()), {}});
  return *known;
}

double TrafficPlanner::add_call(const Call& call, std::uint64_t times) {
  const auto kind = workload_.groups[call.group].kind;
  const std::uint16_t index = call.target != kNoRank
                                  ? schedules_.transfer_row(kind)
                                  : schedules_.get(call.group, *ops_.at(call)).row;
  CollectiveTraffic& row = plan_.collectives[index];
  row.calls += times;
  touched_.clear();
  const std::uint64_t messages_before = row.messages, inside_before = plan_.intra_messages,
                      sent_before = row.wire_messages;
  if (const Algorithm* scheme = scheme_of(call)) {
    add_notes(row, call, *scheme, times);
  } else {
    const CallTraffic& traffic = walked(call).traffic;
    row.buffer_bytes += times * traffic.call_bytes;
    const std::shared_ptr<const Schedule> made = schedule_of(call);
    const Schedule& schedule = *made;
    const auto& members = workload_.groups[call.group].members;
    for (const auto& edge : traffic.edges)
      add_edge(row, call, edge,
               nics_of(cluster_, schedule, members, edge.from, edge.to, edge.channel), times);
    if (schedule.flow_control().credits > 0 || schedule.flow_control().posting.needed())
      row.wire_credits += row.wire_messages - sent_before;
  }
  // A rank alone, for one, sends nothing and waits for nobody.
  const double chain = row.messages == messages_before ? 0 : chain_seconds(call);
  plan_.work_inside_nodes += is_one_delay(call)
                                 ? times * workload_.groups[call.group].members.size()
                                 : plan_.intra_messages - inside_before;
  double serial = 0;
  for (const auto& [nic, cell] : touched_)
    serial = std::max(serial, nic_seconds(nic, std::max(cell.sent, cell.taken)));
  // A pattern's members all send at the same time, each to one.
  const GroupRank target = is_service(workload_, kind) ? call.target : kNoRank;
  GroupSeconds& group = group_seconds_[{index, call.group, target}];
  group.serial += serial * static_cast<double>(times);
  group.chained += std::max(serial, chain) * static_cast<double>(times);
  row.seconds_at_least = std::max(row.seconds_at_least, group.serial);
  row.chained_seconds = std::max(row.chained_seconds, group.chained);
  return chain;
}

void TrafficPlanner::add_notes(CollectiveTraffic& row, const Call& call, const Algorithm& scheme,
                               std::uint64_t times) {
  const auto index = static_cast<std::uint32_t>(cluster_.scheme(call.group, scheme));
  const SchemeUse& use = cluster_.schemes()[index];
  const Op& op = *ops_.at(call);
  const Collective& c = schedules_.get(call.group, op).schedule->collective();
  row.buffer_bytes += times * call_elements(c) * c.element_bytes;
  const bool estimated = !use.ends->exact();
  if (estimated) {
    row.estimate = use.ends->estimate();
    links_.add_estimates();
  }
  const std::vector<Ends::Edge> edges =
      scheme_traffic(spec_, workload_, op, *use.ends, c, work_elements(c, 0));
  const auto leaves = [&](const Ends::Edge& edge) {
    return cluster_.location(cluster_.world_party(use, edge.from)).node !=
           cluster_.location(cluster_.world_party(use, edge.to)).node;
  };
  // Bytes that each sender's NIC sends. A modelled network copies a note to many, so it uses the
  // NIC once. Where the edges do not tell which notes go to many (Edge::copies is 0), the largest
  // edge is the lower bound.
  std::map<std::pair<GroupParty, std::uint32_t>, Copies> notes;
  for (const Ends::Edge& edge : edges) {
    if (!leaves(edge)) continue;
    auto& [egress, receivers, way] = notes[{edge.from, edge.copies}];
    egress = copies_ ? std::max(egress, edge.bytes) : egress + edge.bytes;
    ++receivers;
  }
  // Copies share links, too: the largest edge by sender, number and link. A switch's notes
  // without a number count as copies.
  std::map<std::tuple<GroupParty, std::uint32_t, std::uint32_t>, LedgerCell> copied;
  for (const Ends::Edge& edge : edges) {
    const WorldParty from = cluster_.world_party(use, edge.from);
    const WorldParty to = cluster_.world_party(use, edge.to);
    const NicPair nics{cluster_.location(from).nic, cluster_.location(to).nic};
    if (edge.messages > 0) {  // 0: used only where something goes wrong
      Copies& same = notes[{edge.from, edge.copies}];
      const std::uint64_t egress = leaves(edge) ? std::exchange(same.egress, 0) : 0;
      const RoutedConnection way{index | kSchemeFlows, 0, from, to};
      add_between(row, way, nics, {edge.bytes, edge.messages}, egress, times);
      const bool copies =
          copies_ && (edge.copies > 0 || cluster_.topology().is_switch(nics.source));
      if (estimated || (copies && same.receivers > 1))
        unsure_bytes_[{nics.source, nics.target}] += edge.bytes * times;
      std::map<std::uint32_t, LedgerCell> of_edge;
      links_.along(
          way, nics, {edge.bytes * times, edge.messages * times},
          [&](std::uint32_t link, const LedgerCell& sum) {
            if (copies) of_edge[link] += sum;
            if (!copies) links_.add(link, sum);
          },
          edge.copies > 0 ? &same.way : nullptr);
      for (const auto& [link, sum] : of_edge) {
        LedgerCell& most = copied[{edge.from, edge.copies, link}];
        most = {std::max(most.bytes, sum.bytes), std::max(most.messages, sum.messages)};
      }
    }
    if (cluster_.outside(from) || cluster_.outside(to)) continue;  // not over a flow of the job
    plan_.sends_packets |= edge.carriage == Carriage::packet && leaves(edge);
    if (connections_) connections_->insert({index | kSchemeFlows, 0, from, to, nics});
  }
  for (const auto& [at, most] : copied) links_.add(std::get<2>(at), most);
}

int TrafficPlanner::chain_of(const Call& call) {
  if (call.target != kNoRank) return 1;
  const Algorithm* scheme = scheme_of(call);
  if (!scheme) {
    std::optional<int>& chain = walked(call).chain;
    const Loops loops = is_one_delay(call) ? Loops::first : Loops::all;
    if (!chain)
      chain = chain_of_a_channel(*schedule_of(call), kMostPlannedSteps, loops).value_or(1);
    return std::max(1, *chain);
  }
  if (!scheme->cost) return 1;
  const auto size = static_cast<int>(workload_.groups[call.group].members.size());
  const Cost cost = scheme->cost(collective_of(workload_, *ops_.at(call), size));
  return cost.most_steps ? 1 : cost.steps;
}

void TrafficPlanner::note_transfers() {
  transfers_.clear();
  for (const auto& [call, times] : calls_) {
    if (call.target == kNoRank) continue;
    const auto& members = workload_.groups[call.group].members;
    transfers_.emplace(members[call.root], members[call.target]);
  }
}

int TrafficPlanner::hops_of_iteration(const Call& call) {
  const auto& members = workload_.groups[call.group].members;
  if (call.target != kNoRank)
    return !carries_over(workload_) &&
           transfers_.contains({members[call.target], members[call.root]});
  const Collective c = collective_of(workload_, *ops_.at(call), static_cast<int>(members.size()));
  switch (c.func) {
    case Func::broadcast:
    case Func::reduce:
    case Func::gather:
    case Func::scatter:
    case Func::send_recv:
      return 0;
    case Func::all_gather_v:
    case Func::all_to_all_v:
      return std::find(c.counts->begin(), c.counts->end(), 0) == c.counts->end() ? chain_of(call)
                                                                                 : 0;
    case Func::all_reduce:
      // Members without a block of their own may end early and start the next call then: the
      // longest chain is followed by one of a single hop, back to where it began.
      if (c.count < members.size() && !scheme_of(call)) return (chain_of(call) + 1) / 2;
      break;
    case Func::reduce_scatter:
    case Func::all_gather:
    case Func::all_to_all:
    case Func::barrier:
      break;
  }
  return chain_of(call);
}

double TrafficPlanner::chain_seconds(const Call& call) {
  const int hops = hops_of_iteration(call);
  const auto& node_of = cluster_.nodes_of_layout(cluster_.layout(call.group));
  // A layout numbers its nodes from 0, as they come.
  const std::int32_t nodes = 1 + *std::max_element(node_of.begin(), node_of.end());
  const Picoseconds hop = nodes == std::ssize(node_of) ? nic_.latency
                          : nodes == 1                 ? intra_latency_
                                                       : std::min(nic_.latency, intra_latency_);
  return hops * seconds(hop);
}

void TrafficPlanner::add_edge(CollectiveTraffic& row, const Call& call,
                              const CallTraffic::Edge& edge, const NicPair& nics,
                              std::uint64_t times) {
  const auto& members = workload_.groups[call.group].members;
  const std::uint32_t pair = call.target == kNoRank ? 0 : kPointToPoint;
  const RoutedConnection c{call.group | pair, static_cast<std::uint16_t>(edge.channel),
                           members[edge.from], members[edge.to]};
  if (connections_) connections_->insert({c.group, c.channel, c.from, c.to, nics});
  add_between(row, c, nics, {edge.bytes, edge.messages}, edge.bytes, times);
  links_.add_calls(c, nics, edge, times);
}

void TrafficPlanner::add_between(CollectiveTraffic& row, const RoutedConnection& connection,
                                 const NicPair& nics, const LedgerCell& call, std::uint64_t egress,
                                 std::uint64_t times) {
  const Location &from = cluster_.location(connection.from), &to = cluster_.location(connection.to);
  const std::uint64_t bytes = call.bytes * times, messages = call.messages * times;
  row.bytes += bytes;
  row.messages += messages;
  if (from.node == to.node) {
    plan_.intra_bytes += bytes;
    plan_.intra_messages += messages;
    return;
  }
  row.wire_bytes += bytes;
  row.wire_messages += messages;
  const Topology& topology = cluster_.topology();  // whose switches' NICs are never busy
  if (!topology.is_switch(nics.source)) {
    egress_[nics.source] += egress * times;
    touched_[nics.source].sent += egress;
  }
  if (!topology.is_switch(nics.target)) {
    ingress_[nics.target] += bytes;
    touched_[nics.target].taken += call.bytes;
  }
  LedgerCell& pair = pairs_[{nics.source, nics.target}];
  pair.bytes += bytes;
  pair.messages += messages;
}

void TrafficPlanner::finish(std::uint64_t iterations) {
  const auto count = static_cast<double>(iterations);
  const auto mean = [&](std::uint64_t sum) { return (sum + iterations / 2) / iterations; };
  for (auto& row : plan_.collectives) {
    plan_.wire_bytes += row.wire_bytes;
    plan_.wire_messages += row.wire_messages;
    for (std::uint64_t* sum : {&row.calls, &row.buffer_bytes, &row.messages, &row.bytes,
                               &row.wire_messages, &row.wire_bytes, &row.wire_credits})
      *sum = mean(*sum);
    row.seconds_at_least /= count;
    row.chained_seconds /= count;
  }
  for (std::uint64_t* sum : {&plan_.wire_messages, &plan_.wire_bytes, &plan_.intra_messages,
                             &plan_.intra_bytes, &plan_.work_inside_nodes})
    *sum = mean(*sum);
  plan_.compute_seconds /= count;
  plan_.latency_seconds /= count;
  for (const auto& [pair, sum] : pairs_) {
    plan_.pairs.push_back({pair.first, pair.second, static_cast<double>(sum.bytes) / count,
                           static_cast<double>(sum.messages) / count});
  }
  double busiest_nic = 0;
  for (const Nic nic : egress_.keys()) {
    const std::uint64_t bytes = mean(std::max(egress_[nic], ingress_[nic]));
    plan_.busiest_nic_bytes = std::max(plan_.busiest_nic_bytes, bytes);
    busiest_nic = std::max(busiest_nic, nic_seconds(nic, bytes));
  }
  Picoseconds busiest_link = 0;
  for (const LinkCount& link : links_.links()) busiest_link = std::max(busiest_link, link.busy);
  plan_.step_seconds_at_least = std::max(
      {plan_.compute_seconds, seconds(workload_.least), busiest_nic,
       seconds(links_.is_exact() ? busiest_link : busiest_leaf()) / count, plan_.latency_seconds});
  const double lasts = std::max(count * plan_.step_seconds_at_least, seconds(busiest_link));
  plan_.network = network_report(cluster_.topology(), links_.links(), count, lasts, true);
}

Picoseconds TrafficPlanner::busiest_leaf() const {
  const Topology& topology = cluster_.topology();
  std::map<std::uint32_t, std::uint64_t> sent, received;
  for (const auto& [nics, sum] : pairs_) {
    if (topology.paths(nics.first, nics.second) == 0 || topology.is_switch(nics.first)) continue;
    const auto unsure = unsure_bytes_.find(nics);
    const std::uint64_t alone = sum.bytes - (unsure == unsure_bytes_.end() ? 0 : unsure->second);
    sent[topology.leaf_of(nics.first)] += alone;
    received[topology.leaf_of(nics.second)] += alone;
  }
  Picoseconds busiest = 0;
  for (const auto* of_leaves : {&sent, &received})
    for (const auto& [leaf, bytes] : *of_leaves)
      busiest = std::max(busiest, topology.links_of(leaf).serialise(bytes));
  return busiest;
}

}  // namespace ghostrank
