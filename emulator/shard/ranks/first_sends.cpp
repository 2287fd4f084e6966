#include "emulator/shard/ranks/first_sends.h"

#include <algorithm>

#include "emulator/shard/ranks/jitter.h"
#include "emulator/shard/ranks/leaving_groups.h"
#include "emulator/shard/shared/windows.h"

namespace ghostrank {

bool FirstSends::known(const JobSpec& spec, const Workload& workload, const Cluster& cluster) {
  if (spec.fabric.kind != FabricKind::virtual_time || cluster.shards() == 1 ||
      !cluster.schemes().empty() || carries_over(workload))
    return false;
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      if (std::any_of(program.at_once.begin(), program.at_once.end(),
                      [](std::uint8_t workers) { return workers > 1; }))
        return false;
  return true;
}

FirstSends::FirstSends(const Workload& workload, const Cluster& cluster, Host host, int shard,
                       double jitter)
    : workload_(workload),
      cluster_(cluster),
      shortest_(least_jitter_factor(jitter)),
      leaves_(leaving_groups(workload, cluster, host, shard)) {}

void FirstSends::begin(const std::vector<RankState>& ranks, std::size_t players) {
  table_.assign(players, {});
  first_ = {};
  for (std::uint32_t i = 0; i < players; ++i) first_.emplace(first_of(ranks[i]), i);
}

Picoseconds FirstSends::first(const std::vector<RankState>& ranks) {
  while (!first_.empty()) {
    const auto [at, rank] = first_.top();
    const Picoseconds now = first_of(ranks[rank]);
    if (now == at) return at;
    first_.pop();
    first_.emplace(now, rank);
  }
  return Windows::kNever;
}

// A lower bound: takes everything between the rank's compute delays as instant.
Picoseconds FirstSends::first_of(const RankState& r) {
  if (r.iteration == r.stop_at) return Windows::kNever;
  const Table& table = table_of(r);
  const StreamState& compute = r.streams[0];
  const Picoseconds done = table.work[compute.pc];
  Picoseconds first = Windows::kNever;
  for (std::size_t s = 0; s < r.streams.size(); ++s) {
    const std::vector<Call>& calls = table.calls[s];
    const StreamState& stream = r.streams[s];
    const auto next =
        std::lower_bound(calls.begin(), calls.end(), stream.pc,
                         [](const Call& call, std::uint32_t pc) { return call.at < pc; });
    if (next == calls.end()) continue;
    // Stream 0 may have run ahead, and have waited, since a record that it has made already.
    const bool recorded = compute.pc > next->after;
    const Picoseconds own = stream.now.at, others = compute.now.at + table.work[next->after] - done;
    first = std::min(first, recorded ? own : std::max(own, others));
  }
  if (r.iteration + 1 < r.stop_at)  // the next iteration begins when stream 0 has ended
    first = std::min(first, compute.now.at + table.work.back() - done);
  return first;
}

const FirstSends::Table& FirstSends::table_of(const RankState& r) {
  auto& [program, table] = table_[r.local];
  if (program == r.program) return *table;
  program = r.program;
  std::vector<bool> kinds;
  for (std::uint16_t kind = 0; kind < workload_.group_names.size(); ++kind) {
    const Membership& in = cluster_.membership(r.id(), kind);
    kinds.push_back(in.taken() && leaves_[in.group]);
  }
  const auto [at, fresh] = tables_.try_emplace({program, kinds});
  if (fresh) at->second = make(*program, r.id());
  table = &at->second;
  return *table;
}

FirstSends::Table FirstSends::make(const Program& program, WorldRank rank) const {
  Table table;
  std::vector<std::vector<std::uint32_t>> records(program.events);  // of stream 0, by event
  Picoseconds work = 0;
  for (std::uint32_t at = 0; const Op& op : program.streams[0]) {
    table.work.push_back(work);
    if (op.kind == Op::Kind::compute)
      work += static_cast<Picoseconds>(static_cast<double>(op.duration) * shortest_);
    if (op.kind == Op::Kind::record) records[op.event].push_back(at);
    ++at;
  }
  table.work.push_back(work);
  for (const OpList& stream : program.streams) {
    std::vector<Call>& calls = table.calls.emplace_back();
    std::vector<std::size_t> waits(program.events);  // so far, by event
    Call next{0, 0};
    const bool own = &stream == &program.streams[0];
    for (const Op& op : stream) {
      if (own) next.after = next.at;
      const bool call =
          op.kind == Op::Kind::collective || op.kind == Op::Kind::send || op.kind == Op::Kind::recv;
      if (call && leaves_[cluster_.membership(rank, op.group).group]) calls.push_back(next);
      if (op.kind == Op::Kind::wait && !op.previous)
        if (const std::size_t n = waits[op.event]++; n < records[op.event].size())
          next.after = std::max(next.after, records[op.event][n]);
      ++next.at;
    }
  }
  return table;
}

}  // namespace ghostrank
