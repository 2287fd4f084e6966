#include "emulator/shard/node_calls.h"

#include <algorithm>
#include <vector>

#include "collectives/library.h"
#include "emulator/shard/idle_call.h"
#include "emulator/traffic/call_traffic.h"
#include "emulator/traffic/longest_chain.h"

namespace ghostrank {

std::size_t NodeCalls::Hash::operator()(const Key& k) const {
  const std::uint64_t launch = static_cast<std::uint64_t>(k.launch) << 16 | k.launch_index;
  return std::hash<const Schedule*>()(k.schedule) ^ launch * 0x9e3779b97f4a7c15ULL;
}

const NodeCalls::Call& NodeCalls::of(std::uint32_t group, const Op& op, const Schedule& schedule) {
  const auto [at, is_new] = calls_.try_emplace({&schedule, op.launch, op.launch_index});
  Call& call = at->second;
  if (!is_new) return call;
  for (const CallTraffic::Edge& edge : walk(schedule).edges) {
    call.sent.bytes += edge.bytes;
    call.sent.messages += edge.messages;
  }
  const std::vector<Op> calls = delays_with(group, op);
  const Op& first = calls.front();
  call.duration = first.launch_index == op.launch_index
                      ? play(group, calls)
                      : of(group, first, *schedules_.get(group, first).schedule).duration;
  return call;
}

std::vector<Op> NodeCalls::delays_with(std::uint32_t group, const Op& op) const {
  std::vector<Op> calls = calls_with(workload_, op);
  std::erase_if(calls, [&](const Op& call) { return !schedules_.can_be_delay(group, call); });
  return calls;
}

Picoseconds NodeCalls::play(std::uint32_t group, const std::vector<Op>& calls) const {
  const Picoseconds latency = spec_.cluster.intra_node.latency;
  const bool is_nccl = std::any_of(calls.begin(), calls.end(), [&](const Op& call) {
    return library_named(schedules_.algorithm(group, call).library) == Library::nccl;
  });
  if (!is_nccl) return play_in_node(spec_, workload_, group, calls, latency);
  int chain = 0;
  for (const Op& call : calls)
    chain += longest_chain(*schedules_.get(group, call).schedule, Loops::first);
  return chain * latency + play_in_node(spec_, workload_, group, calls, 0);
}

}  // namespace ghostrank
