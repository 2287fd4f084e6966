#include "emulator/shard/ranks/lone_ports.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace ghostrank {
namespace {

bool is_end(const Op& op) { return op.kind == Op::Kind::send || op.kind == Op::Kind::recv; }

}  // namespace

LonePorts::LonePorts(const Workload& workload, const Cluster& cluster, const Schedules& schedules)
    : ports_(workload.ranks) {
  std::vector<std::vector<Use>> uses;
  for (const Role& role : workload.roles) uses.push_back(uses_of(role));
  const auto for_each_use = [&](const auto& visit) {
    for (const WorldRank rank : ports_.keys())
      for (const Use& use : uses[workload.role_of[rank]])
        if (const Membership& own = cluster.membership(rank, use.op->group); own.taken())
          visit(rank, use, own);
  };
  for_each_use([&](WorldRank rank, const Use& use, const Membership& own) {
    if (!is_end(*use.op)) return;
    const std::vector<WorldRank>& members = workload.groups[own.group].members;
    const auto size = static_cast<GroupRank>(members.size());
    const WorldRank peer = members[((own.position + use.op->peer) % size + size) % size];
    if (cluster.location(peer).node == cluster.location(rank).node) pass(ports_[rank], use, peer);
  });
  const auto is_any = [&] {
    return std::any_of(ports_.begin(), ports_.end(), [&](const Ports& to) {
      return to.lone_in && to.source.value() != kNone && ports_[to.source].lone_out;
    });
  };
  if (!is_any()) return;
  for_each_use([&](WorldRank rank, const Use& use, const Membership& own) {
    if (is_end(*use.op) || !cluster.inside_node(own.group)) return;
    if (workload.groups[own.group].members.size() < 2) return;
    if (!schedules.can_be_delay(own.group, *use.op))
      ports_[rank].lone_out = ports_[rank].lone_in = false;
  });
  any_ = is_any();
}

// Notes what passes a port of the rank on the way to or from another one of its node.
void LonePorts::pass(Ports& ports, const Use& use, WorldRank peer) const {
  const auto is_first_or_same = [](auto& known, const auto& now) {
    if (known == std::remove_reference_t<decltype(known)>(kNone)) known = now;
    return known == now;
  };
  if (use.op->launch != 0) ports.lone_out = ports.lone_in = false;
  if (use.op->kind == Op::Kind::send) {
    ports.lone_out &= is_first_or_same(ports.stream_out, use.stream);
  } else {
    ports.lone_in &= is_first_or_same(ports.stream_in, use.stream);
    ports.lone_in &= is_first_or_same(ports.source, peer);
  }
}

// Returns the role's sends and receives that differ in more than size, and its collectives.
std::vector<LonePorts::Use> LonePorts::uses_of(const Role& role) {
  std::vector<Use> uses;
  std::set<std::tuple<std::int32_t, Op::Kind, std::uint16_t, std::int32_t, std::uint32_t>> known;
  for (const Program& program : role.iterations)
    for (std::size_t s = 0; s < program.streams.size(); ++s)
      for (const Op& op : program.streams[s].distinct()) {
        const auto stream = static_cast<std::int32_t>(s);
        if (op.kind == Op::Kind::collective ||
            (is_end(op) && known.emplace(stream, op.kind, op.group, op.peer, op.launch).second))
          uses.push_back({stream, &op});
      }
  return uses;
}

}  // namespace ghostrank
