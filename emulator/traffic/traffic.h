// What a job would send, without sending it: found by walking the same schedules that the engine
// plays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "emulator/traffic/cluster.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct CollectiveTraffic {  // one row per (function, group kind, algorithm)
  std::string op, group, algorithm;
  std::uint64_t calls = 0;         // per iteration, communicators summed
  std::uint64_t buffer_bytes = 0;  // per iteration, summed over calls, as nccl-tests counts size
  std::uint64_t messages = 0, bytes = 0;            // all sends, inside nodes too
  std::uint64_t wire_messages = 0, wire_bytes = 0;  // between NICs of different emulated nodes
  double seconds_at_least = 0;  // closed form: the busiest NIC's bytes at its rate, longest group
  double chained_seconds =
      0;  // the same, but no call is shorter than its longest chain of messages
  std::uint64_t wire_credits = 0;  // or permissions: go back for wire_messages
  bool exact = true;               // false: what a scheme sends on average, as data decides
};

struct TrafficPlan {
  std::vector<CollectiveTraffic> collectives;
  std::vector<PairTraffic> pairs;                   // per iteration, sorted by (source, target)
  std::uint64_t wire_messages = 0, wire_bytes = 0;  // per iteration
  std::uint64_t intra_messages = 0, intra_bytes = 0;
  std::uint64_t work_inside_nodes = 0;  // for an engine: messages it plays there, and members of
                                        // calls that are one delay
  std::uint64_t busiest_nic_bytes = 0;
  double compute_seconds = 0;  // longest compute stream of any role
  double latency_seconds = 0;  // longest chain of steps of one call, each a hop's latency
  // The largest of compute, the busiest NIC, the busiest link and latency.
  double step_seconds_at_least = 0;
  bool sends_packets = false;            // of schemes, between nodes: what may be lost
  std::optional<NetworkReport> network;  // empty: no links are modelled
};

// Traffic of iteration `iteration` (the steady state by default). Throws Error(usage) when an
// algorithm is unknown.
TrafficPlan plan_traffic(const JobSpec& spec, const Workload& workload, int iteration = 1 << 30);

// Whether any iteration of the job does.
bool sends_packets(const JobSpec& spec, const Workload& workload);

// Iterations from here on repeat the last one.
int distinct_iterations(const Workload& workload);

// What a collective library would open a connection for: messages from one rank to another on a
// channel of a communicator.
struct Connection {
  // Index into Workload::groups, kPointToPoint set for send/recv; or into Cluster::schemes(),
  // kSchemeFlows set.
  std::uint32_t group = 0;
  std::uint16_t channel = 0;
  Rank from = 0, to = 0;  // parties of the job
  NicPair nics;
  auto operator<=>(const Connection&) const = default;
};

// Every connection that any iteration of the job uses, sorted; those inside nodes too.
std::vector<Connection> plan_connections(const JobSpec& spec, const Workload& workload);

// Makes every schedule that the workload will play, so that what a library cannot do is found
// before the start. Throws Error(usage).
void check_schedules(const JobSpec& spec, const Workload& workload);

// Which process hosts each emulated node.
std::vector<int> place_nodes(const JobSpec& spec, int processes);

}  // namespace ghostrank
