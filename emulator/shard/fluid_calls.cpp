#include "emulator/shard/fluid_calls.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "emulator/shard/fluid_links.h"
#include "profiles/job/nic_rates.h"

namespace ghostrank {
namespace {

constexpr std::size_t kAhead = 4;  // prefetch distance, in calls that begin
// Messages of a connection for each of its queue pairs; of more, all pairs carry as good as alike.
constexpr std::uint64_t kMostTurns = 16;

FluidKey key_of(std::uint32_t site, const Op& op) {
  FluidKey key{site,   op.group, op.func, op.dtype, is_ragged(op.func) ? op.counts : op.count,
               op.peer};
  key.reduction = op.reduction;
  key.floats = op.floats;
  key.launch = op.launch;
  key.call = op.launch_index;
  return key;
}

}  // namespace

std::size_t FluidCalls::Hash::operator()(const FluidKey& k) const {
  std::uint64_t h = (std::uint64_t{k.site} << 32 | k.count) * 0x9e3779b97f4a7c15ULL;
  h ^= (static_cast<std::uint64_t>(k.source) << 32 ^ static_cast<std::uint32_t>(k.target)) *
       0xc2b2ae3d27d4eb4fULL;
  h ^= (k.count >> 32 << 24 | std::uint64_t{k.kind} << 16 | static_cast<unsigned>(k.func) << 8 |
        static_cast<unsigned>(k.dtype)) *
       0x165667b19e3779f9ULL;
  h += (std::uint64_t{k.launch} << 16 | k.call) * 0x27d4eb2f165667c5ULL;
  return h ^ h >> 29;
}

FluidCalls::FluidCalls(const JobSpec& spec, const Workload& workload, const Cluster& cluster,
                       const Schedules& schedules)
    : spec_(spec),
      workload_(workload),
      cluster_(cluster),
      schedules_(schedules),
      network_(2 * static_cast<std::size_t>(cluster.nics()) + cluster.topology().links()),
      by_flowlets_(cluster.topology().routes_per() == Routing::Per::flowlet),
      pairs_(cluster.topology().queue_pairs()),
      flowlets_(spec.cluster.topology.flowlet_gap) {}

Fluid& FluidCalls::of(std::uint32_t group, const Op& op) {
  const FluidKey key = key_of(group, op);
  const auto known = calls_.find(key);
  return known != calls_.end() ? known->second : make(key, op);
}

Fluid& FluidCalls::of_transfer(std::uint32_t group, const Op& op, GroupRank source,
                               GroupRank target) {
  FluidKey key{group, op.group, Func::send_recv, op.dtype, op.count, source, target};
  key.floats = op.floats;
  key.within = op.within;
  const auto known = calls_.find(key);
  return known != calls_.end() ? known->second : make(key, op);
}

Fluid& FluidCalls::make(const FluidKey& key, const Op& op) {
  Fluid& fluid = calls_[key];
  fluid.transfer = key.target != kNoRank;
  fluid.row = fluid.transfer ? schedules_.transfer_row(op.group) : schedules_.get(key.site, op).row;
  FluidLayout& layout = layout_of(key, op);
  fluid.layout = &layout;
  fluid.route = &route_of(key, layout);
  fluid.idle = &idle_of(key, op, layout, *fluid.route);
  const std::uint32_t credits = layout.schedule->flow_control().credits;
  if (fluid.transfer && is_service(workload_, key.kind)) {
    const auto connections = static_cast<std::uint32_t>(connections_.size());
    const std::array<std::uint32_t, 3> ends{key.site, static_cast<std::uint32_t>(key.source),
                                            static_cast<std::uint32_t>(key.target)};
    fluid.connection = connections_.try_emplace(ends, connections).first->second;
    last_of_connection_.resize(connections_.size(), kNone);
  }
  if (!fluid.route->of_turn.empty()) fluid.of_turn.resize(pairs_.count);
  fluid.waits = fluid.transfer && credits > 0 && layout.messages > credits;
  fluid.fill = std::min(fluid.route->latency, fluid.idle->duration);
  // Where only links are slow, the call alone takes its latency.
  const Picoseconds flowing = std::max<Picoseconds>(fluid.idle->duration - fluid.fill, 1);
  if (!fluid.route->needs.empty() && layout.bytes > 0) {
    fluid.bytes = layout.bytes;
    fluid.cap = fluid.bytes / static_cast<double>(flowing);
  }
  in_order_.push_back(&fluid);
  return fluid;
}

const IdleCall& FluidCalls::idle_of(const FluidKey& key, const Op& op, FluidLayout& layout,
                                    const FluidRoute& route) {
  const auto play = [&] {
    FluidWays unused;
    return route.ways->empty()
               ? play_alone(spec_, workload_, key.site, op, route.source, route.target, nullptr)
               : play_alone(spec_, workload_, key.site, op, route.source, route.target,
                            &cluster_.topology(), ways_of(route, unused));
  };
  if (key.target == kNoRank || schedules_.is_direct(key.kind)) {
    const auto known = layout.idle.find(route.ways);
    return known != layout.idle.end() ? known->second : layout.idle[route.ways] = play();
  }
  const auto [known, fresh] = idle_transfers_.try_emplace(idle_key(key, layout, route));
  if (fresh) known->second = play();
  return known->second;
}

// All that decides how long a transfer between nodes takes on an idle network: its kind of group,
// which says whose library plays it, the links on its way, what its messages make of an element,
// and of both ends the steps, equal ones counted, and the NICs of each channel, numbered as they
// come.
std::vector<std::uint64_t> FluidCalls::idle_key(const FluidKey& key, const FluidLayout& layout,
                                                const FluidRoute& route) const {
  const Schedule& schedule = *layout.schedule;
  std::vector<std::uint64_t> out{key.kind, schedule.collective().element_bytes,
                                 static_cast<std::uint64_t>(schedule.protocol()),
                                 route.ways->size()};
  out.insert(out.end(), route.ways->begin(), route.ways->end());
  std::vector<Nic> sources, targets;
  const auto number = [](std::vector<Nic>& known, Nic nic) {
    const auto at = std::find(known.begin(), known.end(), nic);
    const auto n = static_cast<std::uint64_t>(at - known.begin());
    if (at == known.end()) known.push_back(nic);
    return n;
  };
  for (const GroupRank end : {key.source, key.target}) {
    const int actors = schedule.actors(end);
    out.push_back(static_cast<std::uint64_t>(actors));
    for (int a = 0; a < actors; ++a) {
      const Actor actor = schedule.actor(end, a);
      const NicPair nics = connected(route, {0, 1, actor.channel, 0}).nics;
      out.push_back(number(sources, nics.source) << 32 | number(targets, nics.target));
      Step before;
      for (int k = 0; k < actor.steps; ++k) {
        const Step step = schedule.step(end, a, k);
        const bool same = k > 0 && step.send.count == before.send.count &&
                          step.recv.count == before.recv.count && step.slices == before.slices &&
                          step.slice_elements == before.slice_elements;
        if (same) {
          ++out.back();
        } else {
          out.insert(out.end(), {step.send.count, step.recv.count, step.slices, step.slice_elements,
                                 std::uint64_t{1}});
        }
        before = step;
      }
    }
  }
  return out;
}

// Of a connection's messages, which count as equally large.
std::uint64_t FluidCalls::bytes_on_wire(const LedgerCell& sent) const {
  const Framing& framing = spec_.fabric.framing;
  return framing.none() || sent.messages == 0
             ? sent.bytes
             : framing.on_wire(sent.bytes / sent.messages) * sent.messages;
}

FluidLayout& FluidCalls::layout_of(FluidKey key, const Op& op) {
  const bool transfer = key.target != kNoRank;
  const std::uint32_t group = key.site;
  const GroupRank source = key.source, target = key.target;
  if (transfer && schedules_.is_direct(key.kind)) {
    key.site = 0;
    key.source = 0;
    key.target = 1;
  } else {
    key.site = cluster_.layout(group);
    if (transfer) key.pair = schedules_.pair_of(group, op, source, target);
  }
  const auto [made, fresh] = layouts_.try_emplace(key);
  FluidLayout& layout = made->second;
  if (!fresh) return layout;
  if (transfer)
    layout.schedule = schedules_.transfer(group, op, source, target);
  else
    layout.schedule = {std::shared_ptr<const Schedule>(), schedules_.get(group, op).schedule.get()};
  layout.traffic = walk(*layout.schedule, pairs_);
  std::vector<std::uint64_t> on_wire;  // by edge
  std::uint64_t most = 0;
  for (const CallTraffic::Edge& e : layout.traffic.edges) {
    layout.messages = std::max(layout.messages, e.messages);
    most = std::max(most, on_wire.emplace_back(bytes_on_wire({e.bytes, e.messages})));
  }
  layout.bytes = static_cast<double>(most);
  FluidPattern pattern;
  const std::uint32_t step = is_ragged(op.func) ? 1 : FluidPattern::kCoarse;
  for (std::size_t i = 0; i < on_wire.size(); ++i) {
    const CallTraffic::Edge& e = layout.traffic.edges[i];
    const double share = most > 0 ? static_cast<double>(on_wire[i]) / layout.bytes : 0;
    const double parts = std::ceil(share * FluidPattern::kWhole / step);
    const bool turns = !e.any_turn(pairs_) && e.messages < kMostTurns * pairs_.count;
    pattern.edges.push_back({transfer ? 0 : e.from, transfer ? 1 : e.to, e.channel,
                             static_cast<std::uint32_t>(parts) * step,
                             turns ? static_cast<std::uint32_t>(e.messages) : 0});
  }
  layout.pattern = &*patterns_.insert(std::move(pattern)).first;
  return layout;
}

FluidRoute& FluidCalls::route_of(const FluidKey& key, const FluidLayout& layout) {
  const GroupRank source = key.target != kNoRank ? key.source : kNoRank;
  const auto [made, fresh] = routes_.try_emplace({key.site, layout.pattern, source, key.target});
  FluidRoute& route = made->second;
  if (!fresh) return route;
  route.number = static_cast<std::uint32_t>(routes_.size());
  route.pattern = layout.pattern;
  route.schedule = layout.schedule.get();
  route.group = key.site;
  route.source = source;
  route.target = key.target;
  find_needs(route);
  kept_.push_back(layout.schedule);  // a route outlives the cache of transfers
  return route;
}

std::pair<GroupRank, GroupRank> FluidCalls::ranks_of(const FluidRoute& route,
                                                     const FluidPattern::Edge& e) const {
  return route.target == kNoRank ? std::pair(e.from, e.to) : std::pair(route.source, route.target);
}

bool FluidCalls::inside_node(const FluidRoute& route, const FluidPattern::Edge& e) const {
  const std::vector<WorldRank>& members = workload_.groups[route.group].members;
  const auto [from, to] = ranks_of(route, e);
  return cluster_.location(members[from]).node == cluster_.location(members[to]).node;
}

FluidCalls::Connected FluidCalls::connected(const FluidRoute& route,
                                            const FluidPattern::Edge& e) const {
  const std::vector<WorldRank>& members = workload_.groups[route.group].members;
  const std::uint32_t pair = route.target != kNoRank ? kPointToPoint : 0;
  const auto [from, to] = ranks_of(route, e);
  return {nics_of(cluster_, *route.schedule, members, from, to, e.channel),
          {route.group | pair, static_cast<std::uint16_t>(e.channel), members[from], members[to]}};
}

// Of an edge's share, that of a part in a turn.
double FluidCalls::part_of(double share, const FluidPattern::Edge& e, const Part& part,
                           std::uint32_t turn) {
  if (e.turns == 0) return share / part.of;
  const std::uint32_t behind = behind_first(part.number, turn, e.turns, part.of);
  const std::uint32_t messages = e.turns / part.of + (behind < e.turns % part.of);
  return share * messages / e.turns;
}

// Sums what the pattern needs of every resource, for each byte of its busiest connection.
template <typename FlowletOf>
std::vector<FlowNetwork::Need> FluidCalls::needs_of(const FluidRoute& route,
                                                    const FlowletOf& flowlet_of,
                                                    std::uint32_t turn) const {
  const Topology& topology = cluster_.topology();
  const auto nics = static_cast<std::uint32_t>(cluster_.nics());
  std::vector<FlowNetwork::Need> out;
  out.reserve(6 * route.pattern->edges.size());  // with four links on its way
  for (const FluidPattern::Edge& e : route.pattern->edges) {
    if (inside_node(route, e)) continue;
    const Connected edge = connected(route, e);
    const double share = static_cast<double>(e.share) / FluidPattern::kWhole;
    const auto [from, to] = edge.nics;
    out.push_back(
        {static_cast<std::uint32_t>(from.value()), share * topology.nic(from).ps_per_byte});
    out.push_back(
        {nics + static_cast<std::uint32_t>(to.value()), share * topology.nic(to).ps_per_byte});
    for_each_link(edge, flowlet_of(edge), [&](std::uint32_t link, const Part& part) {
      const double ps_per_byte = topology.link(link).ps_per_byte;
      out.push_back({2 * nics + link, part_of(share, e, part, turn) * ps_per_byte});
    });
  }
  // Stable, so that sums do not depend on how it sorts.
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.resource < b.resource; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.size();) {
    FlowNetwork::Need sum = out[i];
    for (++i; i < out.size() && out[i].resource == sum.resource; ++i)
      sum.ps_per_byte += out[i].ps_per_byte;
    if (sum.ps_per_byte > 0) out[kept++] = sum;
  }
  out.resize(kept);
  return out;
}

void FluidCalls::find_needs(FluidRoute& route) {
  const std::vector<FlowNetwork::Need> needs =
      needs_of(route, [this](const Connected&) { return by_flowlets_ ? 1U : 0U; });
  auto* const kept =
      std::pmr::polymorphic_allocator<FlowNetwork::Need>(&memory_).allocate(needs.size());
  std::uninitialized_copy(needs.begin(), needs.end(), kept);
  route.needs = {kept, needs.size()};
  find_turns(route);
  const Topology& topology = cluster_.topology();
  for (const FluidPattern::Edge& e : route.pattern->edges) {
    if (inside_node(route, e)) continue;
    const Connected edge = connected(route, e);
    const int hops = topology.hops(edge.nics.source, edge.nics.target);
    route.latency =
        std::max(route.latency, topology.path_latency(edge.nics.source, edge.nics.target, hops));
  }
  FluidWays ways;
  ways_of(route, ways);
  route.ways = &*ways_.insert(std::move(ways)).first;
}

void FluidCalls::find_turns(FluidRoute& route) {
  const auto first_link = 2 * static_cast<std::uint32_t>(cluster_.nics());
  const bool links = !route.needs.empty() && route.needs.back().resource >= first_link;
  const auto& edges = route.pattern->edges;
  if (links && std::any_of(edges.begin(), edges.end(), [](const auto& e) { return e.turns > 0; }))
    route.of_turn.resize(pairs_.count);
}

std::span<const FlowNetwork::Need> FluidCalls::needs_in_turn(FluidRoute& route,
                                                             std::uint32_t turn) const {
  if (route.of_turn.empty()) return route.needs;
  std::vector<FlowNetwork::Need>& needs = route.of_turn[turn];
  if (needs.empty())
    needs = needs_of(
        route, [](const Connected&) { return 0U; }, turn);
  return needs;
}

// Returns the ways of the pattern's edges alone, and sets `out` to what they make of it. Links of a
// way count together, as many as there are connections for, whichever they take, but no more than
// begin or end it: where a call's own connections collide, the fair rates hold it back. Where the
// routing chooses for every message, or queue pairs take messages in turn, they are chains side by
// side, each with its own rate.
std::vector<IdleWay> FluidCalls::ways_of(const FluidRoute& route, FluidWays& out) const {
  constexpr double kSlower = 1 + 1e-9;  // rates are quotients
  const Topology& topology = cluster_.topology();
  std::vector<IdleWay> ways;
  const auto first_link = 2 * static_cast<std::uint32_t>(cluster_.nics());
  const double fastest =
      std::min(topology.own().ps_per_byte, topology.nic(Nic(cluster_.nics() - 1)).ps_per_byte);
  const bool slow = std::any_of(route.needs.begin(), route.needs.end(), [&](const auto& need) {
    return need.resource >= first_link &&
           topology.link(need.resource - first_link).ps_per_byte > kSlower * fastest;
  });
  bool delays = topology.links() > 0 && spec_.cluster.topology.link_latency > 0;
  if (!slow && !delays) return ways;
  const SwitchRoutes& routes = topology.routes();
  struct Taken {
    std::array<std::uint32_t, 2> connections{};  // by direction
    std::uint32_t paths = 0;
    double link_bps = 0;  // of the slowest link on the fastest path
    double ends_bps = 0;  // of the links at either leaf on which its paths begin
    bool fast = false;    // some connection finds no link slower than its NICs
  };
  std::vector<Taken> taken;                                              // by way
  std::map<std::uint32_t, std::uint32_t> numbers;                        // of leaves
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;  // ways by their leaves
  for (const FluidPattern::Edge& e : route.pattern->edges) {
    if (inside_node(route, e)) continue;
    const Connected edge = connected(route, e);
    const auto [source, target] = edge.nics;
    const auto links = static_cast<std::uint32_t>(topology.hops(source, target));
    out.push_back(links);
    if (links == 0) continue;
    const std::uint32_t from = topology.leaf_of(source), to = topology.leaf_of(target);
    for (const std::uint32_t leaf : {from, to})
      out.push_back(
          numbers.try_emplace(leaf, static_cast<std::uint32_t>(numbers.size())).first->second);
    const auto [at, fresh] = known.try_emplace(std::minmax(from, to), ways.size());
    if (fresh) {
      ways.push_back({from, to, static_cast<int>(links)});
      taken.emplace_back().paths = topology.paths(source, target);
    }
    Taken& way = taken[at->second];
    ++way.connections[from == ways[at->second].a ? 0 : 1];
    std::vector<double> slowest;  // link by path
    double first = 0, last = 0;
    for_each_link(edge, by_flowlets_ ? 1 : 0, [&](std::uint32_t link, const Part& part) {
      last = topology.link(link).ps_per_byte;
      if (slowest.empty()) first = last;
      slowest.resize(part.number + 1);
      slowest.back() = std::max(slowest.back(), last);
    });
    const double best = *std::min_element(slowest.begin(), slowest.end());
    const double nics =
        std::max(topology.nic(source).ps_per_byte, topology.nic(target).ps_per_byte);
    way.fast |= best <= kSlower * nics;
    if (best == 0) continue;
    way.link_bps = std::max(way.link_bps, 8e12 / best);
    way.ends_bps = std::max(way.ends_bps, 8e12 * std::min(routes.first_hops(from, to) / first,
                                                          routes.first_hops(to, from) / last));
  }
  const bool all = topology.routes_per() == Routing::Per::message;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Taken& way = taken[i];
    if (way.fast) continue;
    const std::uint32_t most = std::max(way.connections[0], way.connections[1]);
    ways[i].bps = std::min(
        way.link_bps * (all ? way.paths : std::min(way.paths, most * pairs_.count)), way.ends_bps);
    const std::uint32_t of_message = all            ? way.paths
                                     : pairs_.split ? 1
                                                    : std::min(way.paths, pairs_.count);
    if (of_message > 1) {
      ways[i].chains = std::clamp(
          static_cast<std::uint32_t>(std::lround(ways[i].bps / way.link_bps)), 1U, of_message);
      ways[i].bps /= ways[i].chains;
    }
    delays = true;
  }
  if (!delays || ways.empty()) {
    out.clear();
    return ways;
  }
  for (const IdleWay& way : ways) {
    const auto bits = std::bit_cast<std::uint64_t>(way.bps);
    out.push_back(static_cast<std::uint32_t>(bits));
    out.push_back(static_cast<std::uint32_t>(bits >> 32));
    out.push_back(way.chains);
  }
  return ways;
}

std::uint32_t FluidCalls::begin(Fluid& fluid) {
  ++fluid.calls;
  if (free_.empty()) {
    active_.push_back({&fluid});
    return static_cast<std::uint32_t>(active_.size() - 1);
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  if (free_.size() >= kAhead) __builtin_prefetch(&active_[free_[free_.size() - kAhead]], 1);
  active_[number] = {&fluid};
  return number;
}

std::uint32_t FluidCalls::number_of_ends(std::uint32_t group, GroupRank source, GroupRank target) {
  const auto next = static_cast<std::uint32_t>(ends_.size());
  const auto [known, fresh] = ends_of_.try_emplace({group, source, target}, next);
  if (fresh) ends_.emplace_back();
  return known->second;
}

std::uint32_t FluidCalls::transfer_of(const Flight& f, PairCounter& pair) {
  const bool receives = f.op->kind == Op::Kind::recv;
  const GroupRank source = receives ? f.peer : f.position, target = receives ? f.position : f.peer;
  const std::uint32_t group = f.group & ~kPointToPoint;
  if (pair.ends == kNil) pair.ends = number_of_ends(group, source, target);
  FluidEnds& ends = ends_[pair.ends];
  if (ends.first != kNone && ends.of_receiver != receives) {
    const std::uint32_t number = ends.first;
    ends.first = active_[number].next_open;
    return number;
  }
  const Op* const before = std::exchange(ends.op, f.op);
  if (before != f.op && !(before && are_one_transfer(*before, *f.op)))
    ends.fluid = &of_transfer(group, *f.op, source, target);
  const std::uint32_t number = begin(*ends.fluid);
  (ends.first == kNone ? ends.first : active_[ends.last].next_open) = number;
  ends.last = number;
  ends.of_receiver = receives;
  return number;
}

void FluidCalls::end(std::uint32_t number) { free_.push_back(number); }

// A call's connections send from its beginning until it would end on an idle network.
void FluidCalls::depart(std::uint32_t number, Picoseconds now) {
  Active& call = active_[number];
  if (FluidRoute& taken = *call.fluid->route; !taken.of_turn.empty()) {
    call.turn = taken.begun++ % pairs_.count;
    ++call.fluid->of_turn[call.turn];
  }
  if (!by_flowlets_) return;
  const FluidRoute& route = *call.fluid->route;
  const Picoseconds until = now + call.fluid->idle->duration - call.fluid->fill;
  std::size_t at = 0;
  for (const CallTraffic::Edge& sent : call.fluid->layout->traffic.edges) {
    const FluidPattern::Edge& e = route.pattern->edges[at++];
    if (inside_node(route, e)) continue;
    const Connected edge = connected(route, e);
    for_each_link(edge, flowlets_.number(edge.connection, now, until),
                  [&](std::uint32_t link, const Part& part) {
                    add(of_flowlets_[link], link, {sent.bytes, sent.messages}, part);
                  });
  }
  call.needs =
      needs_of(route, [this](const Connected& edge) { return flowlets_.present(edge.connection); });
  const auto first_link = 2 * static_cast<std::uint32_t>(cluster_.nics());
  for (const FlowNetwork::Need& need : call.needs)
    if (need.resource >= first_link) ++of_flowlets_[need.resource - first_link].passed;
}

bool FluidCalls::takes_turn(std::uint32_t number) {
  const std::uint32_t connection = active_[number].fluid->connection;
  if (connection == Fluid::kNoConnection) return true;
  const std::uint32_t before = std::exchange(last_of_connection_[connection], number);
  if (before == kNone) return true;
  active_[before].next = number;
  return false;
}

std::uint32_t FluidCalls::next_turn(std::uint32_t number) {
  const Active& call = active_[number];
  const std::uint32_t connection = call.fluid->connection;
  if (connection != Fluid::kNoConnection && last_of_connection_[connection] == number)
    last_of_connection_[connection] = kNone;
  return call.next;
}

void FluidCalls::flow(std::uint32_t number, Picoseconds now) {
  Active& call = active_[number];
  const std::span<const FlowNetwork::Need> needs =
      by_flowlets_ ? call.needs : needs_in_turn(*call.fluid->route, call.turn);
  call.flow = network_.add(needs, call.fluid->bytes, call.fluid->cap, now);
  if (call.flow >= looks_.size()) looks_.resize(call.flow + 1);
  looks_[call.flow].call = number;
}

const FluidCalls::Look* FluidCalls::look_sooner(FlowNetwork::Id flow) {
  Look& look = looks_[flow];
  const Picoseconds end = network_.end(flow);
  if (end == FlowNetwork::kNever || (look.at != Look::kNone && look.at <= end)) return nullptr;
  look.at = end;
  ++look.number;
  return &look;
}

Picoseconds FluidCalls::follow_rates(Picoseconds now) {
  const NicRates* const rates = spec_.cluster.nic_rates.get();
  const Topology& topology = cluster_.topology();
  if (now >= rates_until_) {
    const auto nics = static_cast<std::uint32_t>(cluster_.nics());
    for (std::uint32_t n = 0; rates && n < nics; ++n) {
      const RateCurve* curve = rates->of(Nic(n));
      if (!curve) continue;
      const double share = topology.nic(Nic(n)).ps_per_byte / curve->ps_per_byte(at_ + now);
      network_.give(n, share);
      network_.give(nics + n, share);
    }
    Picoseconds change = rates ? rates->next_change(at_ + now) : NicRates::kNever;
    if (links_) {
      for (const auto& [link, curve] : links_->all())
        network_.give(2 * nics + link,
                      topology.link(link).ps_per_byte / curve.ps_per_byte(at_ + now));
      change = std::min(change, links_->next_change(at_ + now));
    }
    rates_told_ = change == NicRates::kNever;
    rates_until_ = rates_told_ ? change : change - at_;
  }
  if (network_.flows() == 0 || std::exchange(rates_told_, true)) return -1;
  return rates_until_;
}

void FluidCalls::watch(LinkTimes* times) {
  network_.watch(times, 2 * static_cast<std::uint32_t>(cluster_.nics()));
}

void FluidCalls::clear(Picoseconds at, const LinkRates* links) {
  network_.clear();
  flowlets_.clear();
  of_flowlets_.assign(cluster_.topology().links(), {});
  at_ = at;
  links_ = links;
  rates_until_ = 0;
  active_.clear();
  last_of_connection_.assign(connections_.size(), kNone);
  free_.clear();
  looks_.clear();
  for (FluidEnds& ends : ends_) ends.first = kNone;
  for (auto& [key, fluid] : calls_) {
    fluid.calls = 0;
    std::fill(fluid.of_turn.begin(), fluid.of_turn.end(), 0);
  }
  for (auto& [key, route] : routes_) route.begun = 0;
}

}  // namespace ghostrank
