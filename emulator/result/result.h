// What a run measured: the value behind the table, the JSON result (ghostrank/result/1) and the
// CSV. Times are seconds of the emulated cluster unless the name says wall. The engine fills it;
// tools/ renders it.
//
// Threading: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/exactness.h"
#include "collectives/schedule.h"
#include "emulator/network/queue_count.h"
#include "profiles/units.h"

namespace ghostrank {

struct HostReport {
  Host index;
  // If nothing crosses a network, both `provider` and `transport` are "memory" or "virtual".
  std::string hostname, provider, transport;
  int ranks = 0;
  std::uint64_t rss_bytes = 0;
  double cpu_seconds = 0;
  std::string name = {};        // name in the job's `hosts`; empty: not listed there
  std::string cores = {};       // CPUs of the engine threads, "0-3": bound to or allowed
  bool bound = false;           // whether each engine thread was bound to CPUs of its own
  std::string cores_note = {};  // why not bound, although it should be
  std::string cpu = {};         // "AMD EPYC 7B13"; empty: /proc/cpuinfo does not say
  std::string kernel = {};      // "Linux 6.1.0-18-amd64 x86_64"
  std::string libfabric = {};   // "1.17"; empty: not loaded, as nothing crossed a real network
};

struct IterationReport {
  double seconds = 0;  // from the last rank's end of the previous iteration to its end of this one
  double compute_seconds = 0;       // mean over ranks
  double exposed_comm_seconds = 0;  // mean over ranks: the compute stream waited for a collective
  double bubble_seconds = 0;        // likewise, waited for a send/recv
  double rank_seconds = 0;   // mean over ranks, each since its own end of the previous iteration
  double rank0_seconds = 0;  // as rank_seconds, of rank 0
  double earliest_end = 0;   // of any rank, since the segment began
  double late_seconds = 0;   // part of `seconds` that this machine may have added; < 0: made up for
};

inline double mean_seconds(std::span<const IterationReport> iterations) {
  double sum = 0;
  for (const IterationReport& i : iterations) sum += i.seconds;
  return iterations.empty() ? 0 : sum / static_cast<double>(iterations.size());
}

struct CollectiveReport {
  std::string op, group, algorithm;  // "allreduce", "dp", "ring"
  Exactness exactness{};
  double calls = 0;           // per iteration, communicators summed
  double bytes = 0;           // buffer bytes per iteration, as nccl-tests counts a call
  double seconds_median = 0;  // of one call, seen by group rank 0
  std::pair<double, double> seconds_interval;  // SampledSeconds::median_interval()
  double seconds_spread = 0;                   // SampledSeconds::spread_at_median()
  double algbw_GBps = 0, busbw_GBps = 0;
  double seconds_error = 0, bandwidth_error = 0;  // as Figure::error
};

struct PairTraffic {  // payload that crossed NICs of different emulated nodes, per iteration
  Nic source_nic, target_nic;
  double bytes = 0, messages = 0;
};

struct NicTraffic {  // what crossed a NIC of the emulated cluster, per iteration
  Nic nic;
  double tx_bytes = 0, rx_bytes = 0, tx_messages = 0, rx_messages = 0;
};

// Connections of the provider between two processes of the job; over TCP one 5-tuple each way.
struct FlowCount {
  Host host, peer;  // host <= peer; equal for colocated nodes on the wire
  int flows = 0;
};

struct ByteCounts {
  std::optional<std::uint64_t> tx_bytes, rx_bytes;  // empty: unreadable
};

// Packets of schemes between emulated nodes, over the measured iterations. A packet to many counts
// once per receiver. The network carried sent - lost_on_purpose + doubled_on_purpose packets.
struct PacketCounts {
  std::uint64_t sent = 0;  // by agents, including those lost on purpose
  std::uint64_t received = 0;
  std::uint64_t lost_on_purpose = 0, doubled_on_purpose = 0, delayed_on_purpose = 0;
  // On a real network only. dropped: arrivals that the kernel had no room for (packets that it had
  // joined count as one). refused: packets that the kernel did not send. strays: packets of another
  // run or segment, and malformed ones.
  std::uint64_t dropped = 0, refused = 0, strays = 0;
  std::uint64_t unreadable = 0;  // engine threads that could not read `dropped`
  // Of `sent`, to a switch outside ghostrank: the rank had no answer to the packet before.
  std::uint64_t sent_again = 0;

  void merge(const PacketCounts& other) {
    sent += other.sent;
    received += other.received;
    lost_on_purpose += other.lost_on_purpose;
    doubled_on_purpose += other.doubled_on_purpose;
    delayed_on_purpose += other.delayed_on_purpose;
    dropped += other.dropped;
    refused += other.refused;
    strays += other.strays;
    unreadable += other.unreadable;
    sent_again += other.sent_again;
  }
};

// Failures of the switches that sum for schemes, over the measured iterations.
struct SwitchTroubles {
  std::uint64_t failures = 0;       // of modelled switches
  std::uint64_t unheard = 0;        // notes that came to one while it was away
  std::uint64_t restarts = 0;       // of streams of packets, on which the workers of a rail agreed
  std::uint64_t fallbacks = 0;      // rails that gave their switch up
  std::uint64_t ring_calls = 0;     // calls of rails, or the rest of one, without the switch
  Picoseconds first_fallback = -1;  // emulated, since the start; < 0: none

  bool any() const { return failures + restarts + fallbacks > 0; }
  void merge(const SwitchTroubles& other) {
    failures += other.failures;
    unheard += other.unheard;
    restarts += other.restarts;
    fallbacks += other.fallbacks;
    ring_calls += other.ring_calls;
    const bool later = first_fallback >= 0 && first_fallback <= other.first_fallback;
    if (other.first_fallback >= 0 && !later) first_fallback = other.first_fallback;
  }
};

// Load of links between switches, if they are modelled: over the measured iterations, or in a plan
// over one iteration of the shortest possible duration. Bytes and messages are per iteration. A
// note to many is one message on links that its copies share; in a plan it is one per receiver.
// `queue`: of all ports of a tier, where packets are played.
//
// Waits are of messages in front of the link; of packets, where they are played; of calls, where
// these travel as flows: how much longer a call takes because this link gives it less than it could
// use.
struct LinkLoad {
  std::string link;        // "leaf0-spine1"
  double utilisation = 0;  // share of the time that it is busy
  double bytes = 0, messages = 0;
  std::optional<double> mean_wait_s, longest_wait_s;  // empty in a plan
};
struct LinkTier {
  std::string name;  // "leaf-spine"
  std::uint32_t links = 0;
  double utilisation_mean = 0, utilisation_max = 0;
  double bytes = 0, messages = 0;
  std::optional<double> mean_wait_s, longest_wait_s;
  std::optional<QueueCount> queue;
};
struct NetworkReport {
  std::string model = "loggp";
  std::string topology, routing;
  std::vector<LinkTier> tiers;
  std::vector<LinkLoad> hottest;  // busiest first
  std::uint64_t fluids = 0;       // collectives that travelled as flows
};

// How busy links were over the measured iterations; of several jobs, until the last had ended.
struct LinkHistory {
  double bin_seconds = 0;                // that each value covers
  std::uint32_t used = 0;                // links that carried anything
  std::vector<std::string> links;        // the busiest of them, at most kMost, busiest first
  std::vector<std::vector<float>> busy;  // by link, then bin: share of time
  static constexpr std::size_t kMost = 64;
};

// What the machine counted on one interface of the data path, over the measured iterations.
struct InterfaceReport {
  Host host;
  std::string network_namespace;  // of the interface; empty: that of the process
  std::string device;
  std::optional<std::uint64_t> tx_bytes, rx_bytes;
  bool loopback = false;               // not a network
  std::vector<ByteCounts> iterations;  // each from one end of an iteration on this host to the next
  std::vector<std::pair<std::string, std::uint64_t>> counters;  // by how much each grew
};

// The whole job stood still, and either went on or was ended for it. Times count from the start of
// the measured iterations.
struct StallReport {
  double start_s = 0, seconds = 0;            // emulated
  double wall_start_s = 0, wall_seconds = 0;  // of this machine
  std::vector<int> iterations;                // that it affected, from 0
};

// An event of the job (profiles/job/events.h) that has happened.
struct EventReport {
  double at_s = 0;               // emulated, since the start of the measured iterations
  std::optional<double> wall_s;  // the same of this machine; empty in virtual time
  std::optional<int> iteration;  // the one under way, from 0; empty: several jobs have their own
  std::string kind;              // "mark", "slow", "link", "kill"
  std::string what;              // in words; of a mark: its name
};

// How far a figure of a run in real time may be off because of this machine: the relative distance
// from the same figure of times without the lateness that the machine may have added to them.
struct Figure {
  std::string name;  // its path in the JSON result
  double error = 0;
  bool valid() const { return error <= kMostError; }
  static constexpr double kMostError = 0.01;
};

struct Fidelity {
  bool faithful = false;
  bool modelled = false;  // virtual time: no lateness to measure
  std::vector<std::string> valid_for;
  double lateness_us_p50 = 0, lateness_us_p99 = 0, lateness_us_max = 0;  // wall
  // Error of the median step that this machine may have caused on the critical path, as a share of
  // the step; over a network also what the hosts were held up, and how far the run was behind at
  // its end.
  double critical_lateness = 0;
  double rate_error = 0;      // paced rate relative to the rate asked for
  double run_queue_wait = 0;  // share of wall time in which work was due and the thread did not run
  double loop_busy = 0;       // of the busiest shard
  double throttled = 0;  // share of wall time that the cgroup's CPU quota took; < 0: unreadable
  double queued = 0;     // share of wall time in the kernel's run queue; < 0: unreadable
  std::vector<Figure> figures;   // of a run in real time
  std::string reason;            // why it is not faithful, in words
  bool assumed_compute = false;  // nothing of the device's compute times is fitted or measured
  double model_error = 0;        // of step times, relative, where the device says; 0: unknown
};

// What ranks hold of the tensors that are reduced in an iteration, if the job's tensors are sparse
// (`tensors:`).
struct TensorUse {
  std::uint64_t calls = 0;                     // that name a tensor, communicators summed
  std::uint64_t bytes = 0, nonzero_bytes = 0;  // summed over all ranks, as drawn
  double union_density = 0;                    // mean share that is nonzero at some rank of a call
  std::optional<double> last_density;          // of the run's last iteration, if densities change

  double density() const {
    return bytes == 0 ? 0 : static_cast<double>(nonzero_bytes) / static_cast<double>(bytes);
  }
};

// What a rank sends of its gradients in an iteration, if they are compressed.
struct CompressionUse {
  std::string method;
  std::uint64_t payload_bytes = 0;          // before the exchange
  double ratio_target = 1, ratio_mean = 1;  // share of elements kept: asked for, actual
  std::vector<double> ratios = {};          // by iteration, where they follow the network
};

// One of several jobs on one fabric. `iterations`: those that it had ended when every job had ended
// as many as were asked for. `alone`: as many, on the same nodes, while the others did nothing. Of
// a run that was stopped: what each had ended of either.
struct JobReport {
  std::string name, nodes;  // "a", "0-3,8"
  int ranks = 0;
  std::vector<IterationReport> iterations, alone;
  double wire_bytes_per_iteration = 0, messages_per_iteration = 0;  // between emulated nodes
  double samples_per_iteration = 0, flops_per_iteration = 0;        // 0: unknown

  std::optional<TensorUse> tensors;           // as in Result, of this job
  std::optional<CompressionUse> compression;  // likewise

  // Mean step beside the others over mean step alone; 0: unknown, the run was stopped. Steps may
  // differ, so of a run that was stopped only those count that were played both ways.
  double slowdown() const {
    const std::size_t both = std::min(alone.size(), iterations.size());
    const double before = mean_seconds(std::span(alone).first(both));
    return before > 0 ? mean_seconds(std::span(iterations).first(both)) / before : 0;
  }
};

// What ranks learned in a verified run.
struct TrainingUse {
  std::string task;
  std::vector<double> loss;  // over all samples, after every iteration, warm-up included
};

// What the helpers of schemes on one machine did. Bytes are per iteration.
struct ServerReport {
  std::string name;                   // of the node, as in PairTraffic: "n8"
  double rx_bytes = 0, tx_bytes = 0;  // of notes to and from helpers, also inside the node
  double busy = 0;                    // share of the measured time, mean over its cores
  std::uint64_t memory_bytes = 0;     // held at the end
};

struct VerifyReport {
  std::uint64_t checked_elements = 0, wrong_elements = 0;
};

// How much the host can send and what the job needs, found before the start.
struct Capacity {
  double wire_bytes_per_second = 0;  // measured through the fabric; 0 without a wire
  double seconds_per_message = 0;    // measured through the engine
  // Of the busiest process in one iteration, sent or received, whichever is more.
  double wire_bytes = 0, wire_messages = 0;
  double local_messages = 0;  // of the busiest process, one iteration
  double step_seconds_at_least =
      0;  // emulated: the longest of compute with bubble, NIC, link, latency
  double dilation_needed = 1;
  // The part of dilation_needed that the wire alone needs: a wire that is too slow shows no
  // lateness.
  double wire_dilation = 1;
  double cap_dilation = 0;  // the part that safety.max_rate_per_nic needs; 0: there is none
};

struct Span {  // for the Chrome trace; emulated time
  WorldRank rank;
  Host host;
  std::uint8_t stream = 0;
  // 0 compute, 1 collective, 2 point-to-point, 3 wait, 4 a stage of a part of a call's tensor
  std::uint8_t kind = 0;
  std::string label;
  Picoseconds start = 0, duration = 0;
  std::uint64_t bytes = 0;
  std::uint8_t slot = 0;   // which of the stream's concurrent collectives
  std::string call;        // of a stage: label of the op
  std::uint32_t part = 0;  // likewise: number of the part
};

// The part of the cluster that was played (scale.mode: slice). Traffic is per iteration.
struct SliceReport {
  std::string nodes;  // "0-7"
  int nodes_played = 0, of_nodes = 0, ranks_played = 0;
  // Data between the slice and the rest of the cluster, which is modelled.
  double bytes_to_outside = 0, messages_to_outside = 0;
  double bytes_from_outside = 0, messages_from_outside = 0;
};

// The program that played a run.
struct BuildFacts {
  std::string commit;    // "1a2b3c4d5e6f", "...-dirty"; "unknown": built without git
  std::string compiler;  // "GNU 12.2.0"
  std::string type;      // "Release"
};

// The switch outside ghostrank between the nodes.
struct SwitchReport {
  std::string target, address;              // "dpdk", "10.0.0.254"
  std::optional<double> processor_seconds;  // over the measured iterations; empty: unknown
  std::uint64_t memory_bytes = 0;           // of the job's slots; 0: unknown
};

// What ended the measured iterations of a run with an open end.
enum class EndedBy : std::uint8_t {
  nothing,  // it was stopped
  duration,
  interval,
  max_seconds,
  iterations,    // the most that are played
  deterministic  // nothing varies: the fewest
};
inline constexpr std::pair<EndedBy, std::string_view> kEndedBy[] = {
    {EndedBy::nothing, "stopped"},       {EndedBy::duration, "duration"},
    {EndedBy::interval, "ci95_percent"}, {EndedBy::max_seconds, "max_seconds"},
    {EndedBy::iterations, "iterations"}, {EndedBy::deterministic, "deterministic"}};

inline std::string_view name_of(EndedBy by) {
  for (const auto& [value, name] : kEndedBy)
    if (value == by) return name;
  return "";
}

// The measured iterations of a run with an open end (RunEnd).
struct OpenEnd {
  EndedBy by = EndedBy::nothing;
  std::uint64_t iterations = 0;             // that have ended
  std::uint32_t one_in = 1;                 // Result::iterations has about one in so many
  std::vector<std::uint32_t> numbers = {};  // of those, from 0; empty: all
};

struct Result {
  std::string version;
  BuildFacts build = {};
  std::vector<std::string> argv;
  std::string config_json;
  std::string job_name, started_utc;
  std::vector<HostReport> hosts;
  int ranks = 0;  // of the job
  int nics_per_node = 1;
  double dilation = 1;
  double wall_seconds = 0;                  // of this machine, set-up and warm-up included
  double played_wall_seconds = 0;           // of the measured iterations alone
  std::vector<IterationReport> iterations;  // measured ones; of several jobs, of the first
  std::vector<JobReport> jobs;              // empty: there is one
  int iterations_asked = 0;         // measured iterations if nothing interrupts the run; 0: open
  std::optional<OpenEnd> open_end;  // empty: the number of iterations was given
  bool deterministic = false;       // virtual time, and nothing varies by chance
  std::vector<CollectiveReport> collectives;
  double wire_bytes_per_iteration = 0, messages_per_iteration = 0;  // between emulated nodes
  double intra_node_bytes_per_iteration = 0, intra_node_messages_per_iteration = 0;
  std::vector<NicTraffic> nics;    // by NIC, without those that neither sent nor received
  std::vector<PairTraffic> pairs;  // empty if the ledger outgrew memory
  std::vector<FlowCount> flows;
  std::optional<SliceReport> slice;            // empty if every node was played
  std::optional<TensorUse> tensors;            // empty if they are dense
  std::optional<CompressionUse> compression;   // empty if nothing is compressed
  std::optional<TrainingUse> training;         // empty if nothing is learned
  std::vector<ServerReport> servers;           // by node; empty if no helper heard anything
  std::optional<PacketCounts> packets;         // empty if the job has no schemes with agents
  std::optional<NetworkReport> network;        // empty if no links are modelled
  std::optional<LinkHistory> link_history;     // empty if nobody asked, or no links are modelled
  std::optional<SwitchReport> network_switch;  // empty if the job names none
  std::optional<SwitchTroubles> troubles;      // empty if no switch failed, or seemed to
  // Set if the ledger outgrew memory (raw rows, see the notes) or if there are more than 10,000
  // pairs.
  std::string pairs_file;
  std::vector<InterfaceReport> interfaces;
  std::vector<StallReport> stalls;
  std::vector<EventReport> events;  // by time
  Fidelity fidelity;
  std::optional<VerifyReport> verify;
  Capacity capacity;
  double samples_per_iteration = 0, flops_per_iteration = 0;
  double peak_flops = 0;  // per second, of one GPU for the type of the matrix products; 0: unknown
  std::vector<Span> spans;
  std::uint64_t spans_dropped = 0;
  std::vector<std::string> notes;  // remarks a reader must know
  std::string interrupted;         // why the run ended early; empty if complete
};

// How many measured iterations have ended, kept or not; of several jobs, of the first.
inline double iterations_played(const Result& result) {
  return static_cast<double>(result.open_end ? result.open_end->iterations
                                             : result.iterations.size());
}

// The lowest of the collectives' rows: what the whole job may claim.
inline Exactness exactness_of(const Result& result) {
  if (result.collectives.empty()) return {};
  const auto less = [](const CollectiveReport& a, const CollectiveReport& b) {
    return a.exactness < b.exactness;
  };
  return std::min_element(result.collectives.begin(), result.collectives.end(), less)->exactness;
}

}  // namespace ghostrank
