// What a job would send, computed by walking the schedules that the engine plays, without sending
// anything.
//
// Units: bytes, messages, emulated seconds, per iteration. Threading: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "emulator/traffic/cluster.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct CollectiveTraffic {  // one row per (function, group kind, algorithm)
  std::string op, group, algorithm;
  std::uint64_t calls = 0;                // communicators summed
  std::uint64_t buffer_bytes = 0;         // summed over calls, size as nccl-tests counts it
  std::uint64_t messages = 0, bytes = 0;  // all sends, inside nodes too
  std::uint64_t wire_messages = 0, wire_bytes = 0;  // between NICs of different emulated nodes
  // The bytes of the busiest NIC, in the busier direction, at its rate; in the longest group.
  double seconds_at_least = 0;
  // Like seconds_at_least, but no call is shorter than its latencies, where messages are answered.
  double chained_seconds = 0;
  std::uint64_t wire_credits = 0;  // credits or permissions that answer wire_messages
  std::string estimate;            // how it is counted where it is not exact; else empty
};

struct TrafficPlan {
  std::vector<CollectiveTraffic> collectives;
  std::vector<PairTraffic> pairs;  // sorted by (source, target)
  std::uint64_t wire_messages = 0, wire_bytes = 0;
  std::uint64_t intra_messages = 0, intra_bytes = 0;
  // The engine's work inside nodes: its messages there, and the members of calls that it plays as
  // one delay.
  std::uint64_t work_inside_nodes = 0;
  std::uint64_t busiest_nic_bytes = 0;
  double compute_seconds = 0;  // longest compute stream of any role
  double latency_seconds = 0;  // of the one call that adds most latency to every iteration
  // The maximum of compute, the busiest NIC, the busiest link and latency.
  double step_seconds_at_least = 0;
  bool sends_packets = false;            // of schemes, between nodes; they may be lost
  std::optional<NetworkReport> network;  // empty: no links are modelled
};

// The program, by its number in every role, that most of the iterations play that repeat, and how
// many of them; of several that as many play, the last one.
struct SteadyProgram {
  int number = 0;
  std::uint32_t iterations = 1;
};
SteadyProgram steady_program(const Workload& workload);

// Traffic of the program `number`, by default the steady one. Throws Error(usage) if an algorithm
// is unknown.
TrafficPlan plan_traffic(const JobSpec& spec, const Workload& workload,
                         std::optional<int> number = std::nullopt);
// The mean of the iterations that a run measures, whose sizes may differ.
TrafficPlan mean_traffic(const JobSpec& spec, const Workload& workload);

// How long single calls keep NICs and links busy. It remembers the schedules that it walked and the
// answers that it gave. `spec` and `workload` must outlive it.
class CallsOnNetwork {
 public:
  // Resources: the egress of every NIC, then the ingress of every NIC, then the links.
  struct Busy {
    std::uint32_t resource = 0;
    Picoseconds time = 0;
  };

  CallsOnNetwork(const JobSpec& spec, const Workload& workload);
  ~CallsOnNetwork();

  // Returns for how long what all `groups` send together keeps resources busy, in ascending order,
  // if each of them makes `calls` once: collectives, or receives of its members `receivers`. All
  // groups are of one kind. The same first group must come with the same others. The answer stays
  // in place.
  const std::vector<Busy>& busy(const std::vector<std::uint32_t>& groups,
                                const std::vector<Op>& calls,
                                const std::vector<GroupRank>& receivers);

  // Returns which share of a transfer's messages its sender has credits for before the receiver has
  // come. `receive` is a receive of the group's member `receiver`.
  double ahead(std::uint32_t group, const Op& receive, GroupRank receiver);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether any iteration of the job sends packets.
bool sends_packets(const JobSpec& spec, const Workload& workload);

// The number of distinct iterations; later ones repeat the last.
int distinct_iterations(const Workload& workload);

// A connection as a collective library opens it: for the messages from one rank to another on a
// channel of a communicator.
struct Connection {
  // Index into Workload::groups, with kPointToPoint set for send/recv; or into Cluster::schemes(),
  // with kSchemeFlows set.
  std::uint32_t group = 0;
  std::uint16_t channel = 0;
  WorldParty from, to;
  NicPair nics;
  auto operator<=>(const Connection&) const = default;
};

// Every connection that any iteration of the job uses, sorted; those inside nodes too.
std::vector<Connection> plan_connections(const JobSpec& spec, const Workload& workload);

// The process of each emulated node; kNoHost: it is not played.
VectorBy<Node, Host> host_of_nodes(const JobSpec& spec, int processes);

}  // namespace ghostrank
