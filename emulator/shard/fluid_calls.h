// Calls that share the network as flows (fabric.network: flow): which resources a call needs, and
// the calls under way. A call is one flow, whose rate is that of each of its connections: a ring is
// as fast as its slowest edge.
//
//        last member comes            last byte passes        ends
//             │◄────── bytes at the fair rate ──────►│◄─ fill ─►│
//
// Alone on an idle network a call takes as long as in loggp (idle_call.h): that gives the cap of
// its rate. `fill` is the latency of a message. Members that leave a call before its last byte
// passes (a sender that does not wait, the root of a broadcast) leave when they would on an idle
// network. Transfers that send the same steps over as many NICs take equally long there, so only
// one of them is played: in large groups nearly every pair of members has a transfer of its own.
//
// Background's messages from one rank to another (Workload::services) have one connection: each
// flows when those before it have passed.
//
// Resources: the egress of every NIC, then the ingress of every NIC, then the links. Units:
// emulated picoseconds, bytes. Threading: one owner (a shard).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/network/flow_network.h"
#include "emulator/network/flowlets.h"
#include "emulator/network/link_rates.h"
#include "emulator/network/links.h"
#include "emulator/shard/idle_call.h"
#include "emulator/shard/ranks/rank.h"
#include "emulator/traffic/call_traffic.h"
#include "emulator/traffic/ledger.h"
#include "emulator/traffic/schedules.h"

namespace ghostrank {

// What a call is: a collective of a group or of a layout, or a transfer.
struct FluidKey {
  std::uint32_t site = 0;  // group or layout
  std::uint16_t kind = 0;
  Func func = Func::all_reduce;
  DataType dtype = DataType::float32;
  std::uint64_t count = 0;                 // of a v-variant: index of its counts
  GroupRank source = 0, target = kNoRank;  // of a collective: its root
  Reduction reduction = Reduction::sum;
  bool floats = false;                    // as in Op
  Op::Within within = Op::Within::group;  // of a transfer
  std::uint32_t pair = 0;                 // of a transfer of a layout: Schedules::pair_of
  std::uint32_t launch = 0;               // as in Op; `call`: the op's index there
  std::uint16_t call = 0;
  bool operator==(const FluidKey&) const = default;
};

// Who sends to whom in a call, each connection's bytes on the wire as a share of the busiest one's.
// Calls of different sizes have the same pattern, so a group's needs are found once for all of
// them. In that of a transfer 0 sends to 1, whichever ranks these are.
struct FluidPattern {
  // Most calls differ from others of their kind by a few bytes at the most, which kCoarse hides.
  static constexpr std::uint32_t kWhole = 1 << 24, kCoarse = kWhole / 4096;
  struct Edge {
    GroupRank from, to;
    int channel;
    std::uint32_t share;  // of kWhole, rounded up; of v-variants to 1, of others to kCoarse
    // Where queue pairs do not carry alike: messages, which take them in turn; else 0.
    std::uint32_t turns = 0;
    auto operator<=>(const Edge&) const = default;
  };
  std::vector<Edge> edges;  // those of CallTraffic, in its order
  auto operator<=>(const FluidPattern&) const = default;
};

// What links make of a pattern alone, where they add latency or are slower than NICs: for each edge
// how many there are and between which leaves, numbered as they come; then the rate of each way
// between two leaves, and its chains. Calls of a layout for which this is the same take equally
// long alone.
using FluidWays = std::vector<std::uint32_t>;

// What all groups of a layout share: the schedule and what it sends. Transfers that are direct
// (is_direct() in schedules.h) share it, whichever ranks they are between.
struct FluidLayout {
  std::shared_ptr<const Schedule> schedule;
  CallTraffic traffic;
  const FluidPattern* pattern = nullptr;
  double bytes = 0;                           // on the wire, of the busiest connection
  std::uint64_t messages = 0;                 // of the connection that has most
  std::map<const FluidWays*, IdleCall> idle;  // not of transfers that are not direct
};

// The network that a pattern needs where a group has its members.
struct alignas(64) FluidRoute {
  const FluidPattern* pattern = nullptr;
  const Schedule* schedule = nullptr;  // one of those with this pattern: it chooses NICs
  std::uint32_t number = 0;            // as routes were made
  std::uint32_t group = 0;
  GroupRank source = kNoRank, target = kNoRank;  // of a transfer
  std::span<const FlowNetwork::Need> needs;
  Picoseconds latency = 0;          // of a message over the longest path
  const FluidWays* ways = nullptr;  // empty: links add nothing
  // Where some edge has turns: how many calls have begun, and the needs of each turn, of as many as
  // there are queue pairs; those of turn 0 are `needs`, too.
  std::uint32_t begun = 0;
  std::vector<std::vector<FlowNetwork::Need>> of_turn;
};

// A call of a group as a flow.
struct alignas(64) Fluid {
  const FluidLayout* layout = nullptr;
  FluidRoute* route = nullptr;
  const IdleCall* idle = nullptr;  // of a transfer, `end` has its sender's, then its receiver's
  std::uint16_t row = 0;
  bool transfer = false;
  bool waits = false;  // of a transfer: the sender waits for its receiver
  static constexpr std::uint32_t kNoConnection = 0xffffffff;
  std::uint32_t connection = kNoConnection;  // whose transfers flow one after the other
  double bytes = 0;  // that links carry for the busiest connection; 0: no flow, only a delay
  double cap = 0;
  Picoseconds fill = 0;
  std::uint64_t calls = 0;             // played in this segment
  std::vector<std::uint64_t> of_turn;  // of these, where the route has turns

  // When a member leaves on an idle network.
  Picoseconds idle_end(const Flight& member) const {
    return idle->end[transfer ? member.op->kind == Op::Kind::recv : member.position];
  }
};

// The two ends of all transfers from one rank of a group to another. Both ends come to them in the
// same order. So all open transfers lack the same end (send or recv), and close in that order.
struct alignas(32) FluidEnds {
  std::uint32_t first = 0xffffffff, last = 0;  // in FluidCalls, linked by Active::next_open
  bool of_receiver = false;                    // whose end has come
  const Op* op = nullptr;                      // of the last transfer, and its flow: most are alike
  Fluid* fluid = nullptr;
};

class FluidCalls {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;  // no such call
  // A call under way, or a transfer of which one end has come.
  struct alignas(64) Active {
    Fluid* fluid = nullptr;
    Flight* members = nullptr;  // that have not ended, linked by Flight::next_member
    FlowNetwork::Id flow = 0;
    std::uint32_t next_open = kNone;  // of the same ends: the transfer after it
    Picoseconds arrived = -1;         // of a transfer: when its last byte was in; -1: not yet
    bool began = false;
    std::uint32_t turn = 0;                // of its route, where that has turns
    std::uint32_t next = kNone;            // of its connection: flows after it
    std::vector<FlowNetwork::Need> needs;  // its own, where the routing chooses for flowlets
  };

  FluidCalls(const JobSpec& spec, const Workload& workload, const Cluster& cluster,
             const Schedules& schedules);

  // The collective as a flow; made when first asked for.
  Fluid& of(std::uint32_t group, const Op& op);

  // Return the number of a call under way. begin() adds a call. transfer_of() finds the transfer of
  // the end `f`, and adds it when its first end comes; call it once for each end. `pair`: of that
  // end's rank.
  std::uint32_t begin(Fluid& fluid);
  std::uint32_t transfer_of(const Flight& f, PairCounter& pair);
  Active& at(std::uint32_t number) { return active_[number]; }
  void end(std::uint32_t number);
  // The call begins: where the routing chooses for flowlets, its connections take the paths of
  // their flowlets; where they have queue pairs, those whose turn it is.
  void depart(std::uint32_t number, Picoseconds now);
  // Whether the call's flow may come at once. If not, next_turn() returns the call later.
  bool takes_turn(std::uint32_t number);
  // The last byte of the call has passed. Returns the call whose flow comes now, or kNone.
  std::uint32_t next_turn(std::uint32_t number);
  // Lets the call's flow come at `now`.
  void flow(std::uint32_t number, Picoseconds now);
  // The shard's next event for a flow, never later than the flow's end. If the flow slows down, the
  // event comes too early and is repeated; if it becomes faster, an earlier event takes its place.
  // Most flows slow down and recover many times, so they have few events.
  struct Look {
    static constexpr Picoseconds kNone = -1;
    std::uint32_t call = 0, number = 0;  // number: of this event, from 1
    Picoseconds at = kNone;
  };
  const Look& look(FlowNetwork::Id flow) const { return looks_[flow]; }
  // Moves the event to the flow's end and returns it; null if it is not later than that.
  const Look* look_sooner(FlowNetwork::Id flow);
  void looked(FlowNetwork::Id flow) { looks_[flow].at = Look::kNone; }  // it has come
  FlowNetwork& network() { return network_; }
  // Prefetch what the end of a flow touches: call fetch_call() well before fetch_lists(), and that
  // well before fetch_resources().
  [[gnu::always_inline]] void fetch_call(std::uint32_t call, FlowNetwork::Id flow) const {
    __builtin_prefetch(&active_[call]);
    __builtin_prefetch(&looks_[flow]);
    network_.fetch_flow(flow);
  }
  [[gnu::always_inline]] void fetch_lists(std::uint32_t call, FlowNetwork::Id flow) const {
    __builtin_prefetch(active_[call].members);
    __builtin_prefetch(active_[call].fluid);
    network_.fetch_lists(flow);
  }
  [[gnu::always_inline]] void fetch_resources(FlowNetwork::Id flow) const {
    network_.fetch_resources(flow);
  }
  // Prefetch what an end of a transfer touches when it comes, one part after the other, each well
  // before the next. The last three are for a flow, which begins if the other end has come. `ends`:
  // as in PairCounter; kNil: nothing is fetched.
  [[gnu::always_inline]] void fetch_ends(std::uint32_t ends) const {
    if (ends != kNil) __builtin_prefetch(&ends_[ends]);
  }
  [[gnu::always_inline]] void fetch_fluid(std::uint32_t ends) const {
    if (ends == kNil) return;
    __builtin_prefetch(ends_[ends].fluid);
    if (has_other_end(ends)) __builtin_prefetch(&active_[ends_[ends].first]);
  }
  [[gnu::always_inline]] void fetch_route(std::uint32_t ends) const {
    if (!has_other_end(ends)) return;
    __builtin_prefetch(ends_[ends].fluid->route);
    __builtin_prefetch(active_[ends_[ends].first].members);
  }
  [[gnu::always_inline]] void fetch_needs(std::uint32_t ends) const {
    if (has_other_end(ends)) __builtin_prefetch(ends_[ends].fluid->route->needs.data());
  }
  [[gnu::always_inline]] void fetch_needed(std::uint32_t ends) const {
    if (has_other_end(ends)) network_.fetch_needed(ends_[ends].fluid->route->needs);
  }
  void watch(LinkTimes* times);  // notes there when links are busy
  // Where rates change: gives NICs and links those of `now`. Returns when they change next; -1 if
  // they never do, if no flow is under way, or if an earlier call has returned that time.
  Picoseconds follow_rates(Picoseconds now);
  bool rates_change() const { return spec_.cluster.nic_rates || links_; }

  // Between segments; the next begins at time `at` of nic_rates and of `links`, whose rates change
  // in it (null: none).
  void clear(Picoseconds at, const LinkRates* links);
  // Adds what was played to the ledger and the links; returns the number of messages.
  std::uint64_t count(Ledger& ledger, std::vector<LinkCount>& links) const;
  std::uint64_t collectives() const;  // calls of collectives played

 private:
  struct Hash {
    std::size_t operator()(const FluidKey& k) const;
  };
  struct Connected {  // an edge with its NICs
    NicPair nics;
    RoutedConnection connection;
  };
  // What takes one path of an edge, of `of` equal parts. Where the routing chooses for every
  // message there is a part for each path, numbered from that of the first message; where there are
  // queue pairs, one for each, which are equal unless the edge has turns.
  struct Part {
    std::uint32_t number, of;
    std::uint64_t in(std::uint64_t whole) const { return whole / of + (number < whole % of); }
  };
  bool has_other_end(std::uint32_t ends) const {
    return ends != kNil && ends_[ends].first != kNone;
  }
  std::uint32_t number_of_ends(std::uint32_t group, GroupRank source, GroupRank target);
  Fluid& of_transfer(std::uint32_t group, const Op& op, GroupRank source, GroupRank target);
  Fluid& make(const FluidKey& key, const Op& op);
  const IdleCall& idle_of(const FluidKey& key, const Op& op, FluidLayout& layout,
                          const FluidRoute& route);
  std::vector<std::uint64_t> idle_key(const FluidKey& key, const FluidLayout& layout,
                                      const FluidRoute& route) const;
  std::uint64_t bytes_on_wire(const LedgerCell& sent) const;
  FluidLayout& layout_of(FluidKey key, const Op& op);
  FluidRoute& route_of(const FluidKey& key, const FluidLayout& layout);
  std::pair<GroupRank, GroupRank> ranks_of(const FluidRoute& route,
                                           const FluidPattern::Edge& e) const;
  bool inside_node(const FluidRoute& route, const FluidPattern::Edge& e) const;
  Connected connected(const FluidRoute& route, const FluidPattern::Edge& e) const;
  template <typename Visit>  // visit(link, part of the edge)
  void for_each_link(const Connected& edge, std::uint64_t flowlet, const Visit& visit) const;
  void find_needs(FluidRoute& route);
  std::vector<IdleWay> ways_of(const FluidRoute& route, FluidWays& out) const;
  template <typename FlowletOf>  // flowlet_of(edge): its number
  std::vector<FlowNetwork::Need> needs_of(const FluidRoute& route, const FlowletOf& flowlet_of,
                                          std::uint32_t turn = 0) const;
  void find_turns(FluidRoute& route);
  std::span<const FlowNetwork::Need> needs_in_turn(FluidRoute& route, std::uint32_t turn) const;
  static double part_of(double share, const FluidPattern::Edge& e, const Part& part,
                        std::uint32_t turn);
  void add(LinkCount& count, std::uint32_t link, const LedgerCell& sent, const Part& part) const;
  void add_to_pairs(const Fluid& fluid, std::vector<LedgerCell>& sums) const;

  const JobSpec& spec_;
  const Workload& workload_;
  const Cluster& cluster_;
  const Schedules& schedules_;
  FlowNetwork network_;
  // Objects made for calls stay until the end, so an allocator that never frees is enough.
  std::pmr::monotonic_buffer_resource memory_{64 << 10};
  std::pmr::unordered_map<FluidKey, Fluid, Hash> calls_{&memory_};
  std::vector<const Fluid*> in_order_;  // calls_ as they were made
  std::pmr::set<FluidPattern> patterns_{&memory_};
  // By group, pattern and, of a transfer, its ranks.
  std::pmr::map<std::tuple<std::uint32_t, const FluidPattern*, GroupRank, GroupRank>, FluidRoute>
      routes_{&memory_};
  std::pmr::unordered_map<FluidKey, FluidLayout, Hash> layouts_{&memory_};
  std::map<std::vector<std::uint64_t>, IdleCall> idle_transfers_;  // by idle_key()
  std::vector<std::shared_ptr<const Schedule>> kept_;
  // Where the routing chooses for flowlets: these, and what the links have carried so far.
  bool by_flowlets_;
  QueuePairs pairs_;
  Flowlets flowlets_;
  std::vector<LinkCount> of_flowlets_;
  // The connections of background, by group, source and target, and the last call of each that
  // flows or waits for its turn.
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> connections_;
  std::vector<std::uint32_t> last_of_connection_;
  std::vector<Active> active_;
  std::vector<std::uint32_t> free_;
  std::vector<Look> looks_;  // by flow
  Picoseconds at_ = 0;       // arguments of clear()
  const LinkRates* links_ = nullptr;
  Picoseconds rates_until_ = 0;  // NICs and links in network_ have their rates until then
  bool rates_told_ = false;      // follow_rates() has returned that time
  std::vector<FluidEnds> ends_;
  // Their numbers, by group, source and target.
  std::pmr::map<std::tuple<std::uint32_t, GroupRank, GroupRank>, std::uint32_t> ends_of_{&memory_};
  std::set<FluidWays> ways_;
};

}  // namespace ghostrank
