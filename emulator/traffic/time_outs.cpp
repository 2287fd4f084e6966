#include "emulator/traffic/time_outs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "collectives/agent.h"
#include "emulator/agents/agent_runner.h"
#include "emulator/traffic/schedules.h"

namespace ghostrank {
namespace {

// The time-out of a scheme's packets, and how many a rank has in flight.
struct TimeOut {
  std::string_view key;
  Picoseconds after = 0;
  std::uint64_t slots = 0;
};

std::optional<TimeOut> time_out_of(const SchemeUse& use, const CollectiveSpec& own) {
  const InSwitch& in_switch = own.in_switch;
  const auto slots = [](int count) { return static_cast<std::uint64_t>(count); };
  if (use.name == "omnireduce")  // by slots of each aggregator
    return TimeOut{"omnireduce.timeout_us", own.omnireduce.timeout_ps, slots(own.omnireduce.slots)};
  const TimeOut of_switch{"switch.timeout_us", in_switch.timeout_ps, slots(in_switch.slots)};
  if (use.name == "switchml" || use.name == "atp" || use.name == "omnireduce_switch")
    return of_switch;
  const auto service = use.ends->switch_service();  // a plug-in's, by slots
  if (!service) return std::nullopt;
  return TimeOut{of_switch.key, of_switch.after, slots(service->slots)};
}

// The packets between two parties as one edge, whichever of them also go to others.
std::vector<Ends::Edge> without_copies(const std::vector<Ends::Edge>& edges) {
  std::map<std::tuple<GroupParty, GroupParty, Carriage>, Ends::Edge> sums;
  for (const Ends::Edge& edge : edges) {
    Ends::Edge& sum = sums.try_emplace({edge.from, edge.to, edge.carriage},
                                       Ends::Edge{edge.from, edge.to, 0, 0, edge.carriage})
                          .first->second;
    sum.bytes += edge.bytes;
    sum.messages += edge.messages;
  }
  std::vector<Ends::Edge> all;
  for (const auto& [between, edge] : sums) all.push_back(edge);
  return all;
}

// The packets of a call that all its groups have in flight at once, and how long each NIC and each
// helper's machine is busy with them.
class InFlight {
 public:
  InFlight(const Cluster& cluster, const JobSpec& spec, const CollectiveSpec& own)
      : cluster_(cluster),
        machine_(server_machine(spec.cluster.servers, spec.cluster.rank_nodes())),
        per_packet_(own.in_switch.packet_rate > 0
                        ? static_cast<Picoseconds>(1e12 / own.in_switch.packet_rate)
                        : 0) {}

  // Adds those of one group.
  void add(const SchemeUse& use, const std::vector<Ends::Edge>& edges, std::uint64_t slots) {
    const auto ranks = static_cast<GroupParty>(use.parties.size() - use.helpers.size());
    std::uint64_t rounds = 1;  // packets of a rank to one helper, one after the other in its slots
    std::map<GroupRank, int> helpers;
    for (const Ends::Edge& edge : edges) {
      if (edge.carriage != Carriage::packet || edge.from >= ranks) continue;
      rounds = std::max(rounds, edge.messages);
      most_helpers_ = std::max(most_helpers_, ++helpers[edge.from]);
    }
    std::map<Nic, int> sharing;
    for (const auto& [rank, count] : helpers)
      most_sharing_ = std::max(most_sharing_,
                               ++sharing[cluster_.location(cluster_.world_party(use, rank)).nic]);
    for (const Ends::Edge& edge : without_copies(edges)) {
      if (edge.carriage != Carriage::packet || edge.messages == 0) continue;
      const std::uint64_t packets = std::min(slots, rounds) * edge.messages / rounds;
      add(use, edge, std::max<std::uint64_t>(packets, 1), edge.from < ranks);
    }
  }

  std::uint64_t packets() const { return packets_; }  // the most of a rank to one helper
  std::uint64_t packet_bytes() const { return packet_bytes_; }

  // From a rank's first packet until it has the last answer. Packets pass several NICs and
  // machines one after the other, of which the busiest decides. But those of ranks that share a NIC
  // leave one rank after the other, and an answer waits for the last rank's; and a packet to a
  // server that stands beside ranks waits for answers of other servers on its way there and back.
  Picoseconds round_trip() const {
    Picoseconds busiest = 0;
    bool crosses = false;
    for (const auto& [node, time] : machines_) busiest = std::max(busiest, time);
    for (const auto& [nic, busy] : nics_) {
      busiest = std::max({busiest, busy.out, busy.in});
      crosses |= busy.of_ranks && busy.of_helpers;
    }
    const bool twice = crosses && most_helpers_ > 1;
    const Picoseconds again = twice ? busiest : busiest - busiest / most_sharing_;
    return busiest + again + 2 * (to_helpers_ + between_helpers_ + 2 * packet_);
  }

 private:
  struct Busy {
    Picoseconds out = 0, in = 0;
    bool of_ranks = false, of_helpers = false;  // who sends
  };

  void add(const SchemeUse& use, const Ends::Edge& edge, std::uint64_t packets, bool of_rank) {
    const Location from = cluster_.location(cluster_.world_party(use, edge.from)),
                   to = cluster_.location(cluster_.world_party(use, edge.to));
    const std::uint64_t bytes = edge.bytes / edge.messages;
    const auto n = static_cast<Picoseconds>(packets);
    const Topology& topology = cluster_.topology();
    const auto helper = edge.to - static_cast<GroupParty>(use.parties.size() - use.helpers.size());
    // What a helper sends a switch waits there behind the next packets of ranks.
    const bool waits = !of_rank && topology.is_switch(to.nic);
    if (helper >= 0)
      work(use.helpers[static_cast<std::size_t>(helper)], to, waits ? 2 * n : n, bytes);
    if (from.node == to.node) return;
    if (of_rank && packets > packets_) packets_ = packets, packet_bytes_ = bytes;
    Picoseconds& latency = of_rank || helper < 0 ? to_helpers_ : between_helpers_;
    latency = std::max(latency, topology.latency(from.nic, to.nic));
    if (!topology.is_switch(from.nic)) {
      const Picoseconds one = topology.nic(from.nic).serialise(bytes);
      packet_ = std::max(packet_, one);
      nics_[from.nic].out += n * one;
      (of_rank ? nics_[from.nic].of_ranks : nics_[from.nic].of_helpers) = true;
    }
    if (!topology.is_switch(to.nic)) nics_[to.nic].in += n * topology.nic(to.nic).serialise(bytes);
  }

  // What the helper's machine does with packets that come: servers add up in their cores.
  void work(const Helper& helper, const Location& at, Picoseconds packets, std::uint64_t bytes) {
    if (cluster_.topology().is_switch(at.nic)) {
      machines_[at.node] += packets * per_packet_;
    } else if (helper.kind != PartyKind::network_switch) {
      constexpr auto kAdd = static_cast<std::size_t>(Work::add);
      const double each =
          std::max(machine_.core[kAdd] / machine_.cores, machine_.passes[kAdd] * machine_.memory);
      machines_[at.node] += packets * static_cast<Picoseconds>(each * static_cast<double>(bytes));
    }
  }

  const Cluster& cluster_;
  const ServerMachine machine_;
  const Picoseconds per_packet_;  // of a modelled switch
  std::map<Nic, Busy> nics_;
  std::map<Node, Picoseconds> machines_;
  int most_helpers_ = 0;                              // to which one rank sends
  int most_sharing_ = 1;                              // ranks of a group that send from one NIC
  Picoseconds to_helpers_ = 0, between_helpers_ = 0;  // longest latency of an edge
  Picoseconds packet_ = 0;                            // that the slowest NIC takes for one
  std::uint64_t packets_ = 0, packet_bytes_ = 0;
};

std::string note_on(const TimeOut& out, const InFlight& flying, Picoseconds trip) {
  const auto micros = [](Picoseconds time) {
    return std::to_string((time + kPicosPerMicro - 1) / kPicosPerMicro);
  };
  return std::string(out.key) + ": " + micros(out.after) +
         " us may be over before answers come: " + std::to_string(flying.packets()) +
         " packets of " + std::to_string(flying.packet_bytes()) + " bytes in flight take " +
         micros(trip) +
         " us there and back, so packets are sent again that are not lost; use at least " +
         micros(trip);
}

}  // namespace

std::vector<std::string> short_time_outs(const JobSpec& spec, const Workload& workload,
                                         const Cluster& cluster) {
  if (cluster.schemes().empty()) return {};
  std::map<std::tuple<std::uint16_t, Func>, const Op*> largest;  // by kind of group
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream.distinct()) {
          if (op.kind != Op::Kind::collective) continue;
          const Op*& most = largest[{op.group, op.func}];
          if (!most || op.count > most->count) most = &op;
        }
  std::map<std::pair<std::size_t, std::string_view>, std::pair<Picoseconds, std::string>> longest;
  for (const auto& [of, op] : largest) {
    const std::uint16_t kind = std::get<0>(of);
    const JobSpec& own = settings_of(spec, workload, kind);
    const Algorithm* row = own.collectives.row(op->func, own_name(workload, kind));
    if (!row || !row->ends) continue;
    InFlight flying(cluster, spec, own.collectives);  // of all groups of the kind
    std::optional<TimeOut> out;
    for (const SchemeUse& use : cluster.schemes()) {
      const Group& group = workload.groups[use.group];
      if (group.kind != kind || use.name != row->name) continue;
      out = time_out_of(use, own.collectives);
      if (!out) break;
      const Collective c = collective_of(workload, *op, static_cast<int>(group.members.size()));
      // Of sparse tensors, too, all first blocks travel.
      flying.add(use, use.ends->traffic({0, c, op->dtype, Sparsity{}, op->tensor}), out->slots);
    }
    if (!out || flying.packets() == 0) continue;
    const Picoseconds trip = flying.round_trip();
    auto& [most, note] = longest[{job_of_kind(workload, kind), out->key}];
    if (out->after >= trip || trip <= most) continue;
    most = trip;
    note = note_on(*out, flying, trip);
  }
  std::vector<std::string> notes;
  for (const auto& [of, one] : longest)
    if (!one.second.empty())
      notes.push_back((workload.jobs.empty() ? "" : "job " + workload.jobs[of.first].name + ": ") +
                      one.second);
  return notes;
}

}  // namespace ghostrank
