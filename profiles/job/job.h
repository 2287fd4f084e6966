// A job, resolved: every key has its value and remembers its origin. The loader checks jobs against
// one table of keys (profiles/load/job_schema.cpp), from which --print-config, docs/job-format.md
// and profiles/schema/job.schema.json come, too.
//
// Threading: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/compress/memory.h"
#include "collectives/compressor.h"
#include "collectives/gradients/gradient_law.h"
#include "collectives/nccl/machine/machine.h"
#include "collectives/schedule.h"
#include "collectives/tensor_content.h"
#include "profiles/job/kfac_plan.h"
#include "profiles/job/queue_pairs.h"
#include "profiles/job/queues.h"
#include "profiles/units.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct NicSpec {
  double rate_bps = 400e9;  // 0: unlimited
  Picoseconds latency = 2 * kPicosPerMicro;
};

// Machines for the helpers of schemes: nodes of their own, numbered after all others, or, if
// `colocated`, shared with the GPUs of a node.
struct ServerSpec {
  int count = 0;
  bool colocated = false;                             // no nodes of their own
  const struct ServerPlacement* placement = nullptr;  // null: the built-in placement
  int nics = 1;
  NicSpec nic;
  // Of each machine that runs servers, also of one with GPUs. Rates in GB/s; 0: takes no time.
  int cores = 8;
  double add_GBps = 20;        // at which one core adds or copies received data
  double optimizer_GBps = 10;  // at which one core steps weights
  double memory_GBps = 80;     // of the memory, which all cores share
  // The server at place `fails` stops `fails_at` after the start of the measured iterations; -1:
  // none stops.
  int fails = -1;
  Picoseconds fails_at = 0;

  // The number of places for helpers, and how many of them share a node with GPUs (AtServers).
  int places(int rank_nodes) const;
  int beside(int rank_nodes) const;
};

// The network between NICs. Kinds other than nonblocking model the links between switches
// (switches.h).
struct TopologySpec {
  enum class Kind : std::uint8_t {
    nonblocking,
    leaf_spine,
    rail_optimised,
    rail_only,
    fat_tree,
    torus,
    dragonfly,
    file
  };
  Kind kind = Kind::nonblocking;
  int places = 0;               // nodes that the fabric has room for; 0: as many as the job has
  int leaves = 0, spines = 0;   // 0: derived from the size of the cluster
  int pods = 0, cores = 0;      // of a fat tree of three tiers, whose `spines` are those of a pod
  double oversubscription = 1;  // rates of a leaf's NICs over those of its up-links
  double pod_oversubscription = 1;  // rates of a spine's links down over those of its links up
  double uplink_bps = -1;           // of a leaf; < 0: from the oversubscription; 0: unlimited
  std::vector<int> dimensions;      // of a torus: routers along each
  int groups = 0, routers = 0,
      global_links = 0;                   // of a dragonfly; see direct_fabrics.h; 0: derived
  double link_bps = -1, global_bps = -1;  // of either; < 0: a NIC's rate; as link_bps; 0: unlimited
  enum class Placement : std::uint8_t { packed, spread, random, file };
  Placement placement = Placement::packed;  // of the job's nodes on the fabric's places
  std::uint64_t seed = 1;                   // of a random placement
  std::vector<int> place_of_node;           // of a file: by node
  std::vector<std::string> failed;          // links, by name
  std::vector<std::pair<std::string, double>> degraded;  // links, and their rates
  std::shared_ptr<const struct SwitchGraph> file;        // what a file describes
  Picoseconds link_latency = 0;                          // per link, in addition to the NIC's
  Picoseconds flowlet_gap = 50 * kPicosPerMicro;         // see Routing::Per
  const struct Routing* routing = nullptr;               // null: the topology's default
};

struct ClusterSpec {
  int nodes = 1;
  int gpus_per_node = 8;
  int nics_per_node = 8;
  NicSpec nic;
  // Rates of NICs that change in time, at most nic.rate_bps each; null: none change.
  std::shared_ptr<const class NicRates> nic_rates;
  NicSpec intra_node{3600e9, 1 * kPicosPerMicro};
  // Links between the GPUs of a node; null: all are alike. intra_node.rate_bps is then that of a
  // GPU's port for messages to GPUs that it has no link to.
  std::shared_ptr<const struct NodeLinks> links;
  // Numbered after the GPUs' nodes, with the same NICs; their ranks do not train.
  int storage_nodes = 0;
  ServerSpec servers;
  TopologySpec topology;
  // The node of every block of gpus_per_node ranks, if some nodes have no block; empty: node i has
  // block i.
  std::vector<Node> node_of_block;
  int gpus() const { return nodes * gpus_per_node; }
  int rank_nodes() const { return nodes + storage_nodes; }
  int server_nodes() const { return servers.colocated ? 0 : servers.count; }
  int all_nodes() const { return rank_nodes() + server_nodes(); }
  Node node_of(WorldRank rank) const {
    const int block = rank.value() / gpus_per_node;
    return node_of_block.empty() ? Node(block) : node_of_block[static_cast<std::size_t>(block)];
  }
};

enum class Framework : std::uint8_t {
  ddp,
  megatron,
  fsdp,
  torchtitan,
  zero1,
  zero2,
  zero3,
  horovod,
  torchrec,
  dear,
  wfbp,
  mgwfbp,
  bytescheduler,
  kfac,
  byteps,
  phub
};
inline constexpr std::pair<Framework, std::string_view> kFrameworks[] = {
    {Framework::ddp, "ddp"},
    {Framework::megatron, "megatron"},
    {Framework::fsdp, "fsdp"},
    {Framework::torchtitan, "torchtitan"},
    {Framework::zero1, "zero1"},
    {Framework::zero2, "zero2"},
    {Framework::zero3, "zero3"},
    {Framework::horovod, "horovod"},
    {Framework::torchrec, "torchrec"},
    {Framework::dear, "dear"},
    {Framework::wfbp, "wfbp"},
    {Framework::mgwfbp, "mgwfbp"},
    {Framework::bytescheduler, "bytescheduler"},
    {Framework::kfac, "kfac"},
    {Framework::byteps, "byteps"},
    {Framework::phub, "phub"}};
std::string_view name_of(Framework framework);
constexpr bool is_zero(Framework framework) {
  return framework >= Framework::zero1 && framework <= Framework::zero3;
}
// True if every rank holds the whole model, its gradients and the optimizer's state.
constexpr bool is_replicated(Framework framework) {
  return framework == Framework::ddp || framework == Framework::horovod ||
         (framework >= Framework::dear && framework <= Framework::phub);
}
// True if gradients go through servers with keys, by the scheme of the framework's name.
constexpr bool plays_at_servers(Framework framework) {
  return framework == Framework::byteps || framework == Framework::phub;
}

enum class Launch : std::uint8_t { overlap, after_backward, flat };

enum class Fusion : std::uint8_t { size, layers, waiting_time, none };
enum class AllReduceCostModel : std::uint8_t { cluster, ethernet_10g, rdma_100g, spdkfac };

enum class Recompute : std::uint8_t { none, selective, full };
enum class Attention : std::uint8_t { fused, unfused };  // scores on the chip, or in memory
enum class ContextComm : std::uint8_t { p2p, all_gather, a2a, hierarchical };

struct ParallelPlan {
  Framework framework = Framework::ddp;
  int dp = 0;                 // 0: all GPUs that remain beside the other dimensions
  double bucket_cap_mb = 25;  // MiB, as PyTorch counts them
  double first_bucket_mb = 1;
  Launch launch = Launch::overlap;
  bool bucket_views = false;  // ddp: gradients lie in their buckets; else they are copied back
  int micro_batch = 1;        // samples per GPU and micro-batch

  // PyTorch's. compiled: torch.compile fuses a layer's pointwise kernels. foreach_optimizer: each
  // operation of the optimizer is a kernel over all tensors; else one kernel does all operations.
  bool compiled = false, foreach_optimizer = false;

  // megatron
  int tp = 1, pp = 1, cp = 1, ep = 1;
  int expert_tp = 0;            // 0: tp
  bool deduplicated = false;    // a token's row goes to a node once and is copied inside it
  double expert_imbalance = 0;  // relative standard deviation of the experts' random loads
  // Given loads: one list for all layers, or one per layer.
  std::vector<std::vector<double>> expert_load;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";
  int interleave = 1;    // model chunks per pipeline stage
  int global_batch = 0;  // samples of the whole job per step; 0: one micro-batch per dp rank
  bool distributed_optimizer = false;
  bool overlap_grad_reduce = true, overlap_param_gather = true;
  std::uint64_t bucket_size = 0;  // elements; 0: Megatron's default
  Recompute recompute = Recompute::none;
  Attention attention = Attention::fused;
  bool fused_accumulation = true;  // products of weights' gradients add them to their buffer
  bool blocking_wait = false;      // the host waits for tp calls before it launches more
  bool scatter_pipeline = false;   // tp ranks send a part each to the next stage, which gathers it
  bool async_allreduce = true;     // the input gradient's all-reduce overlaps the weight gradient
  bool tp_comm_overlap = false;   // Transformer Engine's: tp calls in parts between products' parts
  int vocabulary_multiple = 128;  // pads a tp rank's part of the vocabulary to a multiple of it
  ContextComm cp_comm = ContextComm::p2p;
  int cp_a2a = 1;  // hierarchical: ranks of a group that exchanges heads; the groups form a ring
  std::string order = "tp-cp-ep-dp-pp";
  bool embedding_in_split = false, loss_in_split = false;  // counted as layers of the split
  int first_layers = 0, last_layers = 0;                   // on those stages; 0: like the others
  std::string pipeline_layout;  // in Megatron's letters (planners/pipeline/layer_split.h)

  // fsdp, torchtitan
  int dp_replicate = 1;             // hybrid sharding: copies of the sharded model
  std::string reshard = "default";  // after_forward: default | always | never
  int prefetch = 1;                 // units gathered ahead of the one that computes

  // zero1, zero2, zero3; elements
  bool overlap_comm = false;         // the backward pass continues during a reduction
  bool multi_rank_allreduce = true;  // per bucket; else a reduce of a part to each rank
  std::uint64_t prefetch_bucket = 0, persistence = 0, max_live = 0, max_reuse = 0;  // zero3
  // torchrec
  // Tables go to random ranks; else each to the least loaded rank.
  bool random_tables = false;
  std::uint64_t row_wise_above = 0;  // tables with more rows are split over all ranks; 0: none

  // horovod; kfac has its cycles, too
  double fusion_mb = 128;  // MiB of the fusion buffer
  double cycle_ms = 1;

  // dear
  Fusion fusion = Fusion::size;
  double threshold_mb = 25;      // MiB of a group of modules
  int nearby_layers = 4;         // modules of a group
  double wait_ms = 5;            // from a group's first gradients to its last
  bool decouple_reduce = false;  // reduce and broadcast in place of reduce-scatter and all-gather

  bool tune = false;  // dear, horovod: sizes are searched for before the run (emulator/tuner)

  KfacPlan kfac;

  // mgwfbp, bytescheduler, kfac
  AllReduceCostModel allreduce_cost = AllReduceCostModel::cluster;
  // bytescheduler, byteps; phub: the first only
  std::uint64_t partition_bytes = 4'000'000, credit_bytes = 16'000'000;

  // byteps
  bool best_split = false;  // mode bound: the optimal shares of BytePS (OSDI'20), no hash
  KeyHash key_hash = KeyHash::djb2;
  bool server_schedule = false;
  bool own_credit = false;  // credit_bytes is the job's, not a default
  bool asynchronous = false;
  Picoseconds server_timeout = 0;  // of silence until a server is asked; 0: no limit
  bool elastic = false;            // the others take the keys of a dead server

  // phub
  Nesterov optimizer{};
  int rack_nics = 0;  // of each box, with phub_racks
};

inline std::array<std::string, kFuncs> for_every_function(const std::string& value) {
  std::array<std::string, kFuncs> values;
  values.fill(value);
  return values;
}

struct CollectiveSpec {
  std::string library = "generic";
  // "auto": the library's first row.
  std::array<std::string, kFuncs> algorithms = for_every_function("auto");
  int channels = 0;                    // 0: one per NIC of a node that the group uses
  std::uint64_t slice_bytes = 0;       // 0: one message per block
  std::uint32_t credits = 0;           // 0: unlimited
  std::string protocol = "auto";       // nccl: auto | Simple | LL | LL128
  int max_channels = 0;                // nccl; 0: the tuner's limit
  std::string node_template = "auto";  // nccl: a kind of node (collectives/nccl/machine/node.h)
  std::shared_ptr<const class Algorithms> own;  // plugins and files (profiles/algorithms)
  // For nccl: a graph dump instead of a kind of node; else null.
  std::shared_ptr<const NcclGraphs> graphs;
  std::shared_ptr<const NcclMachine> machine;  // nccl: a described node; null: the template
  std::optional<NcclCpu> node_cpu;             // nccl: in place of the template's
  Environment environment;                     // nccl: its variables (nccl/environment.h)
  InSwitch in_switch;                          // for schemes that sum in a switch
  AtServers at_servers;       // for schemes with servers: what the job says of them
  OmniReduceSpec omnireduce;  // for the scheme omnireduce
  std::map<std::string, std::map<Func, std::string>> groups;  // by kind of group, where it differs
  // The algorithm that plays `func` in a kind of group; null: the library has none of that name.
  const Algorithm* row(Func func, const std::string& group) const;
  const std::string& algorithm(Func func) const {
    return algorithms[static_cast<std::size_t>(func)];
  }
  std::string& algorithm(Func func) { return algorithms[static_cast<std::size_t>(func)]; }
  // The same, unless `groups` names another one for this kind of group.
  const std::string& algorithm(Func func, const std::string& group) const;
};

// The gradients that a compression method takes as one tensor.
enum class Merge : std::uint8_t {
  bucket,    // what the framework reduces in one call
  tensor,    // every parameter tensor
  model,     // all gradients together
  matrices,  // each matrix; a call carries those of a whole bucket (PyTorch's powerSGD_hook)
};

// A variant of a job that `ghostrank compare` plays: a name, and settings as for -s.
struct JobVariant {
  std::string name, settings;
};

// Measured nanoseconds of a method on a tensor of so many elements; decompress: of one payload.
struct CompressionTime {
  std::uint64_t elements = 0;
  double compress_ns = 0, decompress_ns = 0;
};

// How ranks exchange payloads: the communicators of GRACE.
enum class PayloadExchange : std::uint8_t {
  all_reduce,  // payloads are added up
  all_gather,
  broadcast,   // one after the other, every rank is root
  all_to_all,  // parts of the tensor; sums of parts are compressed again and gathered
};

// For ratios that follow the network: a step's exchanges end `budget` after its last gradients.
struct RatioLimits {
  double budget = 0;  // seconds
  double least = 0, most = 0;
};

struct CompressionSpec {
  const Compressor* method = nullptr;  // built in or of a plugin, which stays loaded
  CompressionOptions options;
  Merge merge = Merge::bucket;
  std::vector<CompressionTime> measured = {};  // by elements; empty: the method's own cost
  // Time that the host adds when it gathers payloads: per call, and per byte that a rank receives.
  double gather_us = 0, gather_ns = 0;
  Memory memory = Memory::none;
  PayloadExchange exchange = PayloadExchange::all_gather;
  bool measured_here = false;              // `measured` is of the job's device
  std::uint64_t min_bytes = 65536;         // byteps: smaller tensors are not compressed
  std::optional<RatioLimits> adapts = {};  // a controller chooses ratios; empty: options.ratio
};

// Gradients of verified runs are those of a logistic regression (profiles/training/logistic.h).
struct TrainingSpec {
  int samples = 32;    // of a rank
  double rate = 0.3;   // by which the mean gradient moves the weights
  double vote = 0.02;  // by which a majority of signs moves them
};

// The job key that names the algorithm: "collectives.allreduce".
std::string algorithm_key(Func func);

// Bytes that a link carries besides the messages; they count wherever a rate is modelled.
struct Framing {
  std::uint32_t packet_payload = 0;  // message bytes per packet; 0: one packet per message
  std::uint32_t per_packet = 0;      // bytes
  std::uint32_t per_message = 0;

  bool none() const { return per_packet == 0 && per_message == 0; }
  std::uint64_t on_wire(std::uint64_t bytes) const {
    const std::uint64_t packets =
        packet_payload == 0 || bytes == 0 ? 1 : (bytes + packet_payload - 1) / packet_payload;
    return bytes + packets * per_packet + per_message;
  }
};

// Faults injected into the schemes' packets between nodes, as shares of all packets.
struct PacketSpec {
  double loss = 0, duplicates = 0, reordering = 0;
  std::uint32_t mtu = 9000;  // bytes of the largest IP packet
};

enum class FabricKind : std::uint8_t { memory, ofi, packets, virtual_time };
inline constexpr std::pair<FabricKind, std::string_view> kFabricKinds[] = {
    {FabricKind::memory, "memory"},
    {FabricKind::ofi, "ofi"},
    {FabricKind::packets, "packets"},
    {FabricKind::virtual_time, "virtual"}};
std::string_view name_of(FabricKind kind);
// Whether messages may leave the process over a real network; emulator/fabric/open.h opens it.
constexpr bool is_network(FabricKind kind) {
  return kind != FabricKind::memory && kind != FabricKind::virtual_time;
}
enum class Colocated : std::uint8_t { memory, model, wire };
enum class FlowKind : std::uint8_t { process, nic, connection };
enum class InsideNode : std::uint8_t { model, messages };
enum class PayloadMode : std::uint8_t { untouched, copied };

// How the modelled network of virtual time shares its NICs and links: message by message, as flows
// with max-min fair rates, or packet by packet.
enum class NetworkModel : std::uint8_t { loggp, flow, packet };

struct FabricSpec {
  FabricKind kind = FabricKind::memory;
  NetworkModel network = NetworkModel::loggp;
  std::string provider = "auto";
  std::string bind;  // local address of the data path; empty: chosen automatically
  FlowKind flows = FlowKind::process;
  Colocated colocated = Colocated::memory;
  std::uint64_t frame_bytes = 0;  // size of the frames that small messages of a flow share; 0: off
  // Network namespaces of emulated nodes: a name with {node}; empty: the process's own.
  std::string namespaces;
  InsideNode inside_node = InsideNode::model;  // for groups wholly inside a node
  PayloadMode payload =
      PayloadMode::untouched;  // memory: copy every payload byte or only its descriptor
  Framing framing;
  PacketSpec packets;
  QueueSpec queues;        // of NetworkModel::packet
  QueuePairs queue_pairs;  // of every connection, on modelled networks
  int dscp = -1;           // kind packets: of all that is sent; -1: the kernel's
};

// Traffic besides the training's own: between ranks that train and ranks of storage nodes
// (checkpoint, data), or among ranks that train, on different nodes.
struct Background {
  enum class Pattern : std::uint8_t { checkpoint, data, incast, permutation, bisection };
  Pattern pattern = Pattern::checkpoint;
  int fan_in = 0;  // senders of an incast; 0: a rank of every other node
  int every = 1;   // period in steps; a transfer begins in its last step
  int over = 1;    // steps that share the bytes, beginning with that one
  // checkpoint: of all ranks together; data: of a sample; 0: the model's. Other patterns: of one
  // sender each time; 0: as many as the rate carries while a step computes.
  std::uint64_t bytes = 0;
  double rate_bps = 0;            // at which a rank hands its bytes over; 0: unlimited
  std::uint64_t chunk = 4 << 20;  // bytes of the largest message
  int at_once = 1;                // messages of a rank in flight
  bool blocking = false;          // begins after the step's compute, not beside it
  std::string source;             // "FILE:LINE:COL"
};

// When the measured iterations end, if not after a given number: with one of the two, at least
// RunSpec::iterations are played.
struct RunEnd {
  double duration = 0;       // seconds: of the wall clock, on fabric virtual emulated; 0: none
  double ci95 = 0;           // half of the mean step's 95 % interval over the mean; 0: none
  double max_seconds = 600;  // wall, beside ci95

  bool is_open() const { return duration > 0 || ci95 > 0; }
};

struct RunSpec {
  int iterations = 5;
  int warmup = 1;
  double min_seconds = 0;  // wall time; more iterations are played if they end sooner
  RunEnd end;
  bool verify = false;
  std::uint64_t seed = 1;
  double jitter = 0;            // relative standard deviation of compute delays, lognormal
  double compute_slowdown = 0;  // share by which communication beside it prolongs compute
  double stall_timeout_s = 60;
  int probe_ms = 200;  // load the fabric so long before the start; 0: not at all
  int shards = 1;      // engine threads of this process; 0: auto
};

// How the scales of fp8 tensors are found, in Megatron-LM's words (--fp8-recipe): delayed takes the
// largest elements of earlier passes, tensorwise those of the tensor itself.
enum class Fp8Recipe : std::uint8_t { delayed, tensorwise };

// Products of linear layers in fp8, whose weights and results are in Precision::parameters.
struct Fp8 {
  Fp8Recipe recipe = Fp8Recipe::delayed;
  bool tp_only_amax = false;  // delayed: replicas keep scales of their own
};

struct Precision {
  DataType parameters = DataType::float32;
  DataType gradients = DataType::float32;
  std::string optimizer = "adam";  // adam | sgd
  std::optional<Fp8> fp8 = {};     // empty: all products are in the parameters' type
};

// Shares of a device's peaks that kernels reach, and times to launch a kernel
// (profiles/device/kernels/kernels.h).
struct KernelShares {
  double matmul = 1, memory = 1;  // shares of the peak and of the memory's bandwidth
  double launch_us = 0;           // the GPU's time to start a kernel
  double host_us = 0;             // the host's time to launch one; 0: the host never holds it up
};

enum class OperandType : std::uint8_t;  // profiles/device/kernels/shapes.h
class MeasuredKernels;                  // profiles/device/kernels/measured.h
struct KernelDemand;                    // profiles/device/kernels/demand.h

// Where a device's compute times come from.
enum class Calibration : std::uint8_t { assumed, fitted, measured };

// Compute of one GPU. With multiprocessors, dense transformers are computed kernel by kernel, else
// by FLOPs and `efficiency`.
struct DeviceProfile {
  std::string name;
  std::map<std::string, double> peak_tflops;  // dense, by type; a missing type is not supported
  double efficiency = 0.4;                    // share of the peak that training reaches
  double memory_GBps = 0;                     // HBM, for the optimizer
  double memory_bytes = 0;
  int multiprocessors = 0;  // 0: no kernels
  KernelShares kernels;
  Calibration calibration = Calibration::assumed;
  std::optional<OperandType> calibrated_type = {};  // of the products it holds for; empty: of all
  double compute_capability = 9;                    // CUDA's
  double step_time_error = 0;  // mean relative error of predicted step times; 0: unknown
  double kernel_error = 0;     // likewise of kernels that were not measured themselves; 0: unknown
  std::string source;          // where the numbers come from
  std::shared_ptr<const MeasuredKernels> measured;  // null: none
  std::shared_ptr<KernelDemand> demand;  // records which kernels are asked for; null: not recorded
};

// A network interface of a real host. Emulated NIC n of a node uses rail n modulo the host's number
// of rails.
struct HostNic {
  std::string device;  // "eth0"
  int rail = 0;        // 0, 1, ... without gaps
};

// A real machine or a part of it; process i plays entry i.
struct HostEntry {
  std::string name;
  std::string cores;          // "0-7,16-23"; empty: all CPUs of the inherited mask
  std::vector<HostNic> nics;  // by rail; empty: chosen automatically
};

struct Placement {
  bool cyclic = false;  // else in blocks of neighbouring nodes
  VectorBy<Node, Host>
      host_of_node;  // the process of every emulated node; empty: blocked or cyclic
};

enum class SwitchTarget : std::uint8_t {
  model,     // none: helpers are modelled, or played on a server
  compiled,  // started by the run, on this machine
  dpdk,      // likewise
  bmv2,      // likewise
  external   // runs already
};
inline constexpr std::pair<SwitchTarget, std::string_view> kSwitchTargets[] = {
    {SwitchTarget::model, "model"},
    {SwitchTarget::compiled, "compiled"},
    {SwitchTarget::dpdk, "dpdk"},
    {SwitchTarget::bmv2, "bmv2"},
    {SwitchTarget::external, "external"}};
std::string_view name_of(SwitchTarget target);

// Which switch plays the helpers of schemes, and forwards everything else, on a real network.
struct SwitchSpec {
  SwitchTarget target = SwitchTarget::model;
  std::string address;  // IPv4, of the switch
  std::string mac;      // empty: the switch answers ARP
  int nics = 1;         // NICs of every node that lead to it; its ports are in their order
  // A run starts so many leaf switches, each for neighbouring nodes, and a spine above them; 1: one
  // switch.
  int leaves = 1;
  std::string ports;  // of a started one: its interface to each NIC, with {node} and {nic}
  std::string network_namespace;  // of these interfaces; empty: that of the process
  std::string socket;             // external: the run describes the job here; empty: it knows
  std::string program, entries;   // of P4 targets: another program and its entries
  std::uint16_t worker_port = 4000;
  double loss = 0;  // share of packets that a started one loses at every port, each way
  std::uint64_t loss_seed = 1;
  // When a modelled switch fails in the measured iterations, ascending, and how long it then stays
  // away. A switch that returns has lost all its state.
  std::vector<Picoseconds> fails_at;
  Picoseconds away = 0;
  bool outside() const { return target != SwitchTarget::model; }
  bool started() const { return outside() && target != SwitchTarget::external; }
  bool on_p4() const { return target == SwitchTarget::dpdk || target == SwitchTarget::bmv2; }
};

// The gradients of tensors whose names match a pattern, as in "fc.*".
struct TensorRule {
  std::string tensors;
  Sparsity sparsity;
};

// One of several jobs on the nodes of one cluster.
struct JobOnNodes {
  std::string name;                           // unique
  std::vector<Node> nodes;                    // of its ranks, in their order; no other job has them
  std::shared_ptr<const struct JobSpec> job;  // on a cluster of so many nodes
  std::string source;                         // "FILE:LINE:COL"
};

struct JobSpec {
  std::string file;  // as given
  std::string model_name;
  DeviceProfile device;
  Precision precision;
  ClusterSpec cluster;
  ParallelPlan parallel;
  CollectiveSpec collectives;
  std::optional<Sparsity> tensors;       // content of the ops' tensors; empty: dense
  std::vector<TensorRule> tensor_rules;  // of parts of them; the first that matches counts
  // Above 0: the density of the last iteration, warm-up included; from one iteration to the next
  // the density changes by a constant factor.
  double last_density = 0;
  std::optional<double> zipf;  // of embeddings' ids: the exponent; empty: gradients are dense
  std::optional<CompressionSpec> compression;  // of the ops' tensors; empty: none
  GradientLaws gradients;                      // for methods whose payload sizes depend on the data
  std::optional<TrainingSpec> training;        // empty: nothing is learned
  std::vector<HostEntry> hosts;                // empty: one process per launched host
  Placement placement;
  double dilation = 0;  // 0: auto
  // At which a process sends at most from an interface of its machine, bits per second, all headers
  // counted; 0: unlimited.
  double max_nic_bps = 0;
  // Ascending: the emulated nodes that are played, while the rest of the cluster is modelled;
  // empty: all are played.
  std::vector<Node> slice;
  FabricSpec fabric;
  SwitchSpec network_switch;
  RunSpec run;
  std::vector<JobVariant> variants;
  std::vector<Background> background;
  std::shared_ptr<const struct JobEvents> events;  // null: none
  std::vector<JobOnNodes> jobs;                    // several on one fabric; empty: this one alone
  std::shared_ptr<const struct Model> model;       // null: only `program`, or `jobs`
  std::shared_ptr<const Workload> program;     // played instead of a plan; null: there is a plan
  std::vector<std::string> notes;              // assumptions of the loader, for reports
  std::map<std::string, std::string> sources;  // "FILE:LINE:COL" of every given key

  // The settings by which a job trains its ranks: those of one of several jobs, or these.
  const JobSpec& of_job(std::size_t job) const { return jobs.empty() ? *this : *jobs[job].job; }

  // The source that an error about a key names: its line, or the job file if the key is not given.
  const std::string& source_of(const std::string& key) const;
};

// The settings of the job that groups of `kind` belong to; its cluster has only that job's nodes.
inline const JobSpec& settings_of(const JobSpec& spec, const Workload& workload,
                                  std::uint16_t kind) {
  return spec.of_job(job_of_kind(workload, kind));
}

}  // namespace ghostrank
