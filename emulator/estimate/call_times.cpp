#include "emulator/estimate/call_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "emulator/shard/idle_call.h"
#include "emulator/traffic/schedules.h"

namespace ghostrank {
namespace {

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

}  // namespace

auto CallTimes::CallKey::tied() const {
  return std::tie(group, members, locations, op.kind, op.func, op.dtype, op.floats, op.peer, counts,
                  op.reduction, op.within, op.count, source, target);
}
bool CallTimes::CallKey::operator<(const CallKey& other) const { return tied() < other.tied(); }

CallTimes::Time CallTimes::alone(const JobSpec& spec, const Workload& workload, std::uint32_t group,
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

}  // namespace ghostrank
