// What a run found out: the value behind the table, the JSON result (ghostrank/result/1) and the
// CSV. Times are seconds of the emulated cluster unless the name says wall. Filled by the engine;
// rendered in tools/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "profiles/units.h"

namespace ghostrank {

struct HostReport {
  int index = 0;
  std::string hostname, provider,
      transport;  // memory: provider "memory", transport "memory"; virtual likewise
  int ranks = 0;
  std::uint64_t rss_bytes = 0;
  double cpu_seconds = 0;
  std::string name = {};   // as the job's `hosts` calls it; empty: not named there
  std::string cores = {};  // CPUs of the engine threads: "0-3", those bound to or those allowed
  bool bound = false;      // whether each engine thread was kept on CPUs of its own choice
  std::string cores_note = {};  // why not, where it was meant to be
};

struct IterationReport {
  double seconds = 0;  // from the last rank's end of the previous iteration to that of this one
  double compute_seconds = 0;       // mean over ranks
  double exposed_comm_seconds = 0;  // mean over ranks: the compute stream waited for a collective
  double bubble_seconds = 0;        // likewise, for a send/recv
  double rank_seconds = 0;          // mean over ranks, each from its own end of the one before
  double rank0_seconds = 0;         // the same of rank 0
  double earliest_end = 0;          // of any rank, since the segment began
};

struct CollectiveReport {
  std::string op, group, algorithm;  // "allreduce", "dp", "ring"
  double calls = 0;                  // per iteration, communicators summed
  double bytes = 0;  // per iteration: buffer bytes of one call as nccl-tests counts them, summed
  double seconds_median = 0;  // of one call, seen by group rank 0
  double algbw_GBps = 0, busbw_GBps = 0;
};

struct PairTraffic {  // payload that crossed NICs of different emulated nodes, per iteration
  int source_nic = 0, target_nic = 0;  // node * nics_per_node + nic
  double bytes = 0, messages = 0;
};

struct NicTraffic {  // what crossed a NIC of the emulated cluster, per iteration
  int nic = 0;       // node * nics_per_node + nic
  double tx_bytes = 0, rx_bytes = 0, tx_messages = 0, rx_messages = 0;
};

// Connections of the provider between two processes of the job; over TCP one 5-tuple each way.
struct FlowCount {
  int host = 0, peer = 0;  // host <= peer; the same where colocated nodes use the wire
  int flows = 0;
};

struct ByteCounts {
  std::optional<std::uint64_t> tx_bytes, rx_bytes;  // empty: unreadable
};

// Packets of schemes between emulated nodes, over the measured iterations; one to many counts once
// for each receiver. On their way were sent - lost_on_purpose + doubled_on_purpose.
struct PacketCounts {
  std::uint64_t sent = 0;  // by agents, those lost on purpose among them
  std::uint64_t received = 0;
  std::uint64_t lost_on_purpose = 0, doubled_on_purpose = 0, delayed_on_purpose = 0;
  // Of a real network: arrivals for which a kernel had no room (what it had joined counts as one);
  // not let out by it; of another run or segment, or malformed.
  std::uint64_t dropped = 0, refused = 0, strays = 0;
  std::uint64_t unreadable = 0;  // engine threads that could not read `dropped`

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
  }
};

// Of links between switches, where they are modelled, over the measured iterations; in a plan, of
// one iteration in the least time that it can take. Bytes and messages are per iteration; a note to
// many is one on links that its copies share (in a plan one for each receiver).
struct LinkLoad {
  std::string link;        // "leaf0-spine1"
  double utilisation = 0;  // share of the time in which it is busy
  double bytes = 0, messages = 0;
  std::optional<double> longest_wait_s;  // of a message before it; empty: of a plan
};
struct LinkTier {
  std::string name;  // "leaf-spine"
  std::uint32_t links = 0;
  double utilisation_mean = 0, utilisation_max = 0;
  double bytes = 0, messages = 0;
  std::optional<double> longest_wait_s;
};
struct NetworkReport {
  std::string model = "loggp";
  std::string topology, routing;
  std::vector<LinkTier> tiers;
  std::vector<LinkLoad> hottest;  // the busiest first
};

// What the machine counted on an interface of the data path over the measured iterations.
struct InterfaceReport {
  int host = 0;
  std::string network_namespace;  // in which it is; empty: that of the process
  std::string device;
  std::optional<std::uint64_t> tx_bytes, rx_bytes;
  bool loopback = false;               // not a network
  std::vector<ByteCounts> iterations;  // from the end of one iteration of the host to the next
  std::vector<std::pair<std::string, std::uint64_t>> counters;  // by how much they grew
};

// The whole job stood still and went on, or was ended for it. Times from the start of the measured
// iterations.
struct StallReport {
  double start_s = 0, seconds = 0;            // emulated
  double wall_start_s = 0, wall_seconds = 0;  // of this machine
  std::vector<int> iterations;                // that it hit, from 0
};

struct Fidelity {
  bool faithful = false;
  bool modelled = false;  // virtual time: there is no lateness to measure
  std::vector<std::string> valid_for;
  std::string level = "L2", basis = "derived";
  double lateness_us_p50 = 0, lateness_us_p99 = 0, lateness_us_max = 0;  // wall
  double critical_lateness =
      0;  // share of the median step that the chain of the last rank owes to this machine
  double rate_error = 0;      // paced rate against asked
  double run_queue_wait = 0;  // share of wall time spent runnable but not running; < 0: unreadable
  double loop_busy = 0;       // busiest shard
  std::string reason;         // why not faithful, in words
};

// What ranks hold of the tensors that are summed up in an iteration, where some of it is zero
// (`tensors:`).
struct TensorUse {
  std::uint64_t calls = 0;                     // that name one, communicators summed
  std::uint64_t bytes = 0, nonzero_bytes = 0;  // of all ranks together, as drawn
  double union_density = 0;                    // share that some rank of a call has, on average

  double density() const {
    return bytes == 0 ? 0 : static_cast<double>(nonzero_bytes) / static_cast<double>(bytes);
  }
};

// What a rank sends of its gradients in an iteration, where they are compressed.
struct CompressionUse {
  std::string method;
  std::uint64_t payload_bytes = 0;          // before they are exchanged
  double ratio_target = 1, ratio_mean = 1;  // share of elements: as asked, as it is
};

struct VerifyReport {
  std::uint64_t checked_elements = 0, wrong_elements = 0;
};

// What the host can source and what the job needs, found before the start.
struct Capacity {
  double wire_bytes_per_second = 0;          // measured through the fabric; 0 without a wire
  double seconds_per_message = 0;            // measured through the engine
  double wire_bytes = 0, wire_messages = 0;  // busiest process, one iteration, sent or received
  double local_messages = 0;                 // busiest process, one iteration
  double step_seconds_at_least = 0;          // emulated: compute, the busiest NIC, or latency
  double dilation_needed = 1;
  double wire_dilation = 1;  // of it, for the wire alone: one that is too slow shows no lateness
};

struct Span {  // for the Chrome trace; emulated time
  std::int32_t rank = 0;
  std::int32_t host = 0;
  std::uint8_t stream = 0;
  std::uint8_t kind = 0;  // 0 compute, 1 collective, 2 point-to-point, 3 wait
  std::string label;
  Picoseconds start = 0, duration = 0;
  std::uint64_t bytes = 0;
  std::uint8_t lane = 0;  // of a stream with several collectives in flight
};

struct Result {
  std::string version;
  std::vector<std::string> argv;
  std::string config_json;
  std::string job_name, started_utc;
  std::vector<HostReport> hosts;
  int ranks = 0;
  int nics_per_node = 1;
  double dilation = 1;
  double wall_seconds = 0;                  // of this machine, set-up and warm-up included
  double played_wall_seconds = 0;           // of the measured iterations alone
  std::vector<IterationReport> iterations;  // measured ones
  int iterations_asked = 0;                 // so many when nothing interrupts them
  bool deterministic = false;  // nothing in it varies by chance: virtual time without jitter
  std::vector<CollectiveReport> collectives;
  double wire_bytes_per_iteration = 0, messages_per_iteration = 0;  // between emulated nodes
  double intra_node_bytes_per_iteration = 0, intra_node_messages_per_iteration = 0;
  std::vector<NicTraffic> nics;    // by NIC; those that neither sent nor received are left out
  std::vector<PairTraffic> pairs;  // none where the ledger outgrew memory
  std::vector<FlowCount> flows;
  std::optional<TensorUse> tensors;           // empty: they are dense
  std::optional<CompressionUse> compression;  // empty: nothing is compressed
  std::optional<PacketCounts> packets;        // empty: the job has no schemes with agents
  std::optional<NetworkReport> network;       // empty: no links are modelled
  // Set when the ledger outgrew memory (raw rows, see the notes) or when there are more than 10,000
  // pairs.
  std::string pairs_file;
  std::vector<InterfaceReport> interfaces;
  std::vector<StallReport> stalls;
  Fidelity fidelity;
  std::optional<VerifyReport> verify;
  Capacity capacity;
  double samples_per_iteration = 0, flops_per_iteration = 0;
  double peak_flops = 0;  // per second, of one GPU for the type of the products; 0: unknown
  std::vector<Span> spans;
  std::uint64_t spans_dropped = 0;
  std::vector<std::string> notes;  // remarks a reader must know
  std::string interrupted;         // why the run ended early; empty: complete
};

}  // namespace ghostrank
