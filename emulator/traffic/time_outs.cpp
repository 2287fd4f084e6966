#include "emulator/traffic/time_outs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "collectives/agent.h"
#include "emulator/traffic/schedules.h"
#include "emulator/traffic/scheme_traffic.h"

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

struct RoundTrip {
  Picoseconds time = 0;
  std::uint64_t packets = 0, packet_bytes = 0;
};

// Of the packets of every rank: as long as the busiest NIC takes for them, and there and back.
RoundTrip round_trip(const Cluster& cluster, const SchemeUse& use,
                     const std::vector<Ends::Edge>& edges, std::uint64_t slots) {
  const Topology& topology = cluster.topology();
  const auto ranks = static_cast<GroupParty>(use.parties.size() - use.helpers.size());
  std::uint64_t rounds = 1;  // of a slot's sums; where data are sparse not all ranks send in each
  for (const Ends::Edge& edge : edges)
    if (edge.carriage == Carriage::packet) rounds = std::max(rounds, edge.messages);
  RoundTrip trip;
  std::map<Nic, Picoseconds> busy;
  Picoseconds latency = 0;
  for (const Ends::Edge& edge : edges) {
    if (edge.carriage != Carriage::packet || edge.messages == 0 || edge.from >= ranks) continue;
    const Location from = cluster.location(cluster.world_party(use, edge.from)),
                   to = cluster.location(cluster.world_party(use, edge.to));
    if (from.node == to.node) continue;
    const std::uint64_t packets = std::min(slots, rounds) * edge.messages / rounds,
                        bytes = edge.bytes / edge.messages;
    if (packets > trip.packets) trip.packets = packets, trip.packet_bytes = bytes;
    latency = std::max(latency, topology.latency(from.nic, to.nic));
    for (const Nic nic : {from.nic, to.nic})
      if (!topology.is_switch(nic))
        busy[nic] += static_cast<Picoseconds>(packets) * topology.nic(nic).serialise(bytes);
  }
  for (const auto& [nic, time] : busy) trip.time = std::max(trip.time, time);
  trip.time += 2 * latency;
  return trip;
}

std::string note_on(const TimeOut& out, const RoundTrip& trip, Picoseconds least) {
  const auto micros = [](Picoseconds time) {
    return std::to_string((time + kPicosPerMicro - 1) / kPicosPerMicro);
  };
  return std::string(out.key) + ": " + micros(out.after) +
         " us may be over before answers come: " + std::to_string(trip.packets) + " packets of " +
         std::to_string(trip.packet_bytes) + " bytes in flight take " + micros(trip.time) +
         " us there and back, so packets are sent again that are not lost; use at least " +
         micros(least);
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
  for (const SchemeUse& use : cluster.schemes()) {
    const Group& group = workload.groups[use.group];
    const JobSpec& own = settings_of(spec, workload, group.kind);
    const std::optional<TimeOut> out = time_out_of(use, own.collectives);
    if (!out) continue;
    for (const auto& [of, op] : largest) {
      if (std::get<0>(of) != group.kind) continue;
      const Algorithm* row = own.collectives.row(op->func, own_name(workload, group.kind));
      if (!row || row->name != use.name) continue;
      const Collective c = collective_of(workload, *op, static_cast<int>(group.members.size()));
      const RoundTrip trip = round_trip(
          cluster, use, scheme_traffic(spec, workload, *op, *use.ends, c, work_elements(c, 0)),
          out->slots);
      // A time-out may be over a quarter sooner (collectives/schemes/shared/slot_timers.h).
      const Picoseconds least = trip.time * 4 / 3;
      auto& [most, note] = longest[{job_of_kind(workload, group.kind), out->key}];
      if (trip.packets == 0 || out->after >= least || trip.time <= most) continue;
      most = trip.time;
      note = note_on(*out, trip, least);
    }
  }
  std::vector<std::string> notes;
  for (const auto& [of, one] : longest)
    if (!one.second.empty())
      notes.push_back((workload.jobs.empty() ? "" : "job " + workload.jobs[of.first].name + ": ") +
                      one.second);
  return notes;
}

}  // namespace ghostrank
