// Calls of groups that lie inside one node, as one delay each (fabric.inside_node: model): how long
// each takes, and what it sends. A call is played once, message by message, on an idle node
// (idle_call.h), and its time is remembered: as many entries as the job has distinct calls.
//
// NCCL's calls are played over links without latency, and take the latencies of their longest chain
// besides, those of later loops left out. That is the form of published all-reduces
// (docs/accuracy.md); messages would hide most latencies behind each other's bytes. So does a
// launch with one of NCCL's.
//
// Units: emulated picoseconds from the time when all members have come. Errors: as play_in_node().
// Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/traffic/cluster.h"
#include "emulator/traffic/ledger.h"
#include "emulator/traffic/schedules.h"

namespace ghostrank {

class NodeCalls {
 public:
  NodeCalls(const JobSpec& spec, const Workload& workload, const Schedules& schedules)
      : spec_(spec), workload_(workload), schedules_(schedules) {}

  struct Call {
    Picoseconds duration = 0;  // of a call of a launch: until all that are delays have ended
    LedgerCell sent;           // sum over all members
  };
  // A collective of a group inside a node which can be a delay (Schedules::can_be_delay), with its
  // schedule. Played when first asked for.
  const Call& of(std::uint32_t group, const Op& op, const Schedule& schedule);

 private:
  struct Key {
    const Schedule* schedule;
    std::uint32_t launch;  // as in Op, like the next
    std::uint16_t launch_index;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const;
  };
  // The calls of the op's launch in the group that are delays.
  std::vector<Op> delays_with(std::uint32_t group, const Op& op) const;
  Picoseconds play(std::uint32_t group, const std::vector<Op>& calls) const;

  const JobSpec& spec_;
  const Workload& workload_;
  const Schedules& schedules_;
  std::unordered_map<Key, Call, Hash> calls_;
};

}  // namespace ghostrank
