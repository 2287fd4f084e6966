// A job as the user wrote it, resolved: every key has its value and remembers where it came from.
// The loader checks against one table of keys (profiles/load/job_schema.cpp), which also drives
// --print-config, docs/job-format.md and profiles/schema/job.schema.json.
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

#include "collectives/compressor.h"
#include "collectives/schedule.h"
#include "collectives/tensor_content.h"
#include "profiles/units.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct NicSpec {
  double rate_bps = 400e9;  // 0 = unlimited
  Picoseconds latency = 2 * kPicosPerMicro;
};

// Machines beside the GPUs' nodes, for helpers of schemes: each a node of its own behind all
// others, or beside the GPUs of a node (colocated).
struct ServerSpec {
  int count = 0;
  bool colocated = false;                             // no nodes of their own
  const struct ServerPlacement* placement = nullptr;  // null: the built-in one, dedicated or not
  int nics = 1;
  NicSpec nic;
};

// What lies between NICs. Where links are modelled, between leaves and spines (leaf_spine.h).
struct TopologySpec {
  enum class Kind : std::uint8_t { nonblocking, leaf_spine, rail_optimised };
  Kind kind = Kind::nonblocking;
  int leaves = 0, spines = 0;    // 0: by the size of the cluster
  double oversubscription = 1;   // rates of a leaf's NICs to those of its up-links
  double uplink_bps = -1;        // negative: what the oversubscription leaves; 0: unlimited
  Picoseconds link_latency = 0;  // that each link adds to the NIC's
  const struct Routing* routing = nullptr;  // null: the usual one
};

struct ClusterSpec {
  int nodes = 1;
  int gpus_per_node = 8;
  int nics_per_node = 8;
  NicSpec nic;
  NicSpec intra_node{3600e9, 1 * kPicosPerMicro};
  int storage_nodes = 0;  // behind the others, with NICs as theirs; they do not train
  ServerSpec servers;
  TopologySpec topology;
  int gpus() const { return nodes * gpus_per_node; }
  int rank_nodes() const { return nodes + storage_nodes; }
  int all_nodes() const { return rank_nodes() + (servers.colocated ? 0 : servers.count); }
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
  torchrec
};
inline constexpr std::pair<Framework, std::string_view> kFrameworks[] = {
    {Framework::ddp, "ddp"},          {Framework::megatron, "megatron"},
    {Framework::fsdp, "fsdp"},        {Framework::torchtitan, "torchtitan"},
    {Framework::zero1, "zero1"},      {Framework::zero2, "zero2"},
    {Framework::zero3, "zero3"},      {Framework::horovod, "horovod"},
    {Framework::torchrec, "torchrec"}};
std::string_view name_of(Framework framework);
constexpr bool is_zero(Framework framework) {
  return framework >= Framework::zero1 && framework <= Framework::zero3;
}

enum class Launch : std::uint8_t { overlap, after_backward, flat };

enum class Recompute : std::uint8_t { none, selective, full };
enum class ContextComm : std::uint8_t { p2p, all_gather, a2a, hierarchical };

struct ParallelPlan {
  Framework framework = Framework::ddp;
  int dp = 0;                 // 0: all GPUs that the other dimensions leave
  double bucket_cap_mb = 25;  // MiB, as PyTorch counts them
  double first_bucket_mb = 1;
  Launch launch = Launch::overlap;
  int micro_batch = 1;  // samples per GPU and micro-batch

  // megatron
  int tp = 1, pp = 1, cp = 1, ep = 1;
  int expert_tp = 0;            // 0: tp
  bool deduplicated = false;    // a row crosses to a node once, and is handed on inside it
  double expert_imbalance = 0;  // relative standard deviation of the experts' loads, drawn
  std::vector<std::vector<double>> expert_load;  // or given: one list for all layers, or by layer
  bool sequence_parallel = false;
  std::string schedule = "1f1b";
  int interleave = 1;    // model chunks per stage
  int global_batch = 0;  // samples of the whole job per step; 0: one micro-batch per dp rank
  bool distributed_optimizer = false;
  bool overlap_grad_reduce = true, overlap_param_gather = true;
  std::uint64_t bucket_size = 0;  // elements; 0: Megatron's default
  Recompute recompute = Recompute::none;
  ContextComm cp_comm = ContextComm::p2p;
  int cp_a2a = 1;  // hierarchical: ranks that exchange heads; their groups form the ring
  std::string order = "tp-cp-ep-dp-pp";
  bool embedding_in_split = false, loss_in_split = false;  // count as layers of the split
  int first_layers = 0, last_layers = 0;                   // of these stages; 0: as the others
  std::string
      pipeline_layout;  // every part letter by letter (profiles/planners/shared/layer_split.h)

  // fsdp, torchtitan
  int dp_replicate = 1;             // hybrid sharding: so many copies of the sharded model
  std::string reshard = "default";  // after_forward: default | always | never
  int prefetch = 1;                 // units gathered ahead of the one computed

  // zero1, zero2, zero3; elements
  bool overlap_comm = false;  // the backward goes on beside a reduction
  bool multi_rank_allreduce =
      true;  // a bucket is all-reduced; or a part of it reduced to each rank
  std::uint64_t prefetch_bucket = 0, persistence = 0, max_live = 0, max_reuse = 0;  // zero3
  // torchrec
  bool random_tables = false;        // where tables go: drawn, or each to who has least to do
  std::uint64_t row_wise_above = 0;  // tables with more rows are split over all ranks; 0: none

  // horovod
  double fusion_mb = 128;  // MiB of the fusion buffer
  double cycle_ms = 1;
};

inline std::array<std::string, kFuncs> for_every_function(const std::string& value) {
  std::array<std::string, kFuncs> values;
  values.fill(value);
  return values;
}

struct CollectiveSpec {
  std::string library = "generic";
  std::array<std::string, kFuncs> algorithms = for_every_function("auto");  // "auto": the
                                                                            // library's first row
  int channels = 0;                    // 0: one per NIC of a node that the group uses
  std::uint64_t slice_bytes = 0;       // 0: one message per block
  std::uint32_t credits = 0;           // 0: unlimited
  std::string protocol = "auto";       // nccl: auto | Simple | LL | LL128
  int max_channels = 0;                // nccl: 0: the tuner's limit
  std::string node_template = "auto";  // nccl: kind of a node (collectives/nccl/node.h)
  std::shared_ptr<const class Algorithms>
      own;                                   // plugins and files (profiles/algorithms/algorithms.h)
  std::shared_ptr<const NcclGraphs> graphs;  // nccl: of a dump in place of a kind; else null
  Environment environment;                   // nccl: its variables (nccl/environment.h)
  InSwitch in_switch;                        // of schemes that sum in a switch
  std::map<std::string, std::map<Func, std::string>> groups;  // algorithms of some kinds of group
  // What the name of a kind of group's algorithm stands for; null: there is none.
  const Algorithm* row(Func func, const std::string& group) const;
  const std::string& algorithm(Func func) const {
    return algorithms[static_cast<std::size_t>(func)];
  }
  std::string& algorithm(Func func) { return algorithms[static_cast<std::size_t>(func)]; }
  // As above, unless `groups` has one for this kind of group.
  const std::string& algorithm(Func func, const std::string& group) const;
};

struct CompressionSpec {
  const Compressor* method = nullptr;  // built in, or a plugin's, which stays
  CompressionOptions options;
};

// The job file's key that names the algorithm: "collectives.allreduce".
std::string algorithm_key(Func func);

// Bytes that a link carries besides a message: what is modelled at a rate counts them.
struct Framing {
  std::uint32_t packet_payload = 0;  // bytes of a message in one packet; 0: a message is one packet
  std::uint32_t per_packet = 0;      // bytes that each packet adds
  std::uint32_t per_message = 0;

  bool none() const { return per_packet == 0 && per_message == 0; }
  std::uint64_t on_wire(std::uint64_t bytes) const {
    const std::uint64_t packets =
        packet_payload == 0 || bytes == 0 ? 1 : (bytes + packet_payload - 1) / packet_payload;
    return bytes + packets * per_packet + per_message;
  }
};

// What befalls packets of schemes on their way between nodes, on purpose. Shares of all packets.
struct PacketSpec {
  double loss = 0, duplicates = 0, reordering = 0;
  std::uint32_t mtu = 9000;  // bytes of the largest packet, of IP
};

enum class FabricKind : std::uint8_t { memory, ofi, virtual_time };
inline constexpr std::pair<FabricKind, std::string_view> kFabricKinds[] = {
    {FabricKind::memory, "memory"},
    {FabricKind::ofi, "ofi"},
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

struct FabricSpec {
  FabricKind kind = FabricKind::memory;
  std::string provider = "auto";
  std::string bind;  // local address of the data path; empty: chosen
  FlowKind flows = FlowKind::process;
  Colocated colocated = Colocated::memory;
  std::uint64_t frame_bytes = 0;  // small messages of a flow share frames of this size; 0: off
  std::string namespaces;  // of emulated nodes: a name with {node} in it; empty: the process's own
  InsideNode inside_node = InsideNode::model;  // groups wholly inside a node
  PayloadMode payload =
      PayloadMode::untouched;  // memory: copy every payload byte, or hand over the descriptor
  Framing framing;
  PacketSpec packets;
};

// Traffic beside the training's own: between ranks that train and those of storage nodes.
struct Background {
  enum class Pattern : std::uint8_t { checkpoint, data };
  Pattern pattern = Pattern::checkpoint;
  int every = 1;            // steps; in the last of so many
  int over = 1;             // steps that share the bytes: that one and those after it
  std::uint64_t bytes = 0;  // of a checkpoint, all ranks together; of a sample. 0: the model's
  double rate_bps = 0;      // at which a rank hands its bytes over; 0: unlimited
  std::uint64_t chunk = 4 << 20;  // bytes of one transfer
  int at_once = 1;                // transfers of a rank that are under way together
  bool blocking = false;          // begins when the step's compute has ended, not beside it
  std::string place;              // "FILE:LINE:COL"
};

struct RunSpec {
  int iterations = 5;
  int warmup = 1;
  double min_seconds = 0;  // wall: more iterations where those are over sooner
  bool verify = false;
  std::uint64_t seed = 1;
  double jitter = 0;            // relative standard deviation of compute delays, lognormal
  double compute_slowdown = 0;  // share that a compute takes longer beside communication
  double stall_timeout_s = 60;
  int probe_ms = 200;  // load the fabric so long before the start; 0: do not
  int shards = 1;      // engine threads in this process; 0: auto
};

struct Precision {
  DataType parameters = DataType::float32;
  DataType gradients = DataType::float32;
  std::string optimizer = "adam";  // adam | sgd
};

// Calibrated compute of one GPU; a simple FLOPs model until layers are measured.
struct DeviceProfile {
  std::string name;
  std::map<std::string, double>
      peak_tflops;  // dense: bfloat16, float16, tfloat32, float32; what is missing cannot be done
  double efficiency = 0.4;  // share of the peak that a training step reaches
  double memory_GBps = 0;   // HBM; the optimizer's cost
  double memory_bytes = 0;
  std::string source;  // where the numbers come from
};

// A network interface of a real host. Emulated NIC n of a node uses rail n modulo the host's rails.
struct HostNic {
  std::string device;  // "eth0"
  int rail = 0;        // 0, 1, ... without gaps
};

// A real machine (or a part of it), played by the process of the same number.
struct HostEntry {
  std::string name;
  std::string cores;          // "0-7,16-23"; empty: those that the process was started on
  std::vector<HostNic> nics;  // by rail; empty: the interface is chosen
};

struct Placement {
  bool cyclic = false;            // blocked | cyclic over the processes
  std::vector<int> host_of_node;  // not empty: the process of every emulated node
};

struct JobSpec {
  std::string file;  // as given
  std::string model_name;
  DeviceProfile device;
  Precision precision;
  ClusterSpec cluster;
  ParallelPlan parallel;
  CollectiveSpec collectives;
  std::optional<Sparsity> tensors;             // of those that ops name; empty: they are dense
  std::optional<CompressionSpec> compression;  // of those that ops name; empty: none
  std::vector<HostEntry> hosts;                // empty: as launched
  Placement placement;
  double dilation = 0;  // 0: auto
  FabricSpec fabric;
  RunSpec run;
  std::vector<Background> background;
  std::shared_ptr<const struct Model>
      model;  // resolved (profiles/model/model.h); null: only `program`
  std::shared_ptr<const Workload> program;     // played in place of a plan; null: there is a plan
  std::vector<std::string> notes;              // what loading assumed, for reports
  std::map<std::string, std::string> sources;  // of the keys that were given: "FILE:LINE:COL"

  // Where to point in an error about a key: its place, or the job file when it is a default.
  const std::string& source_of(const std::string& key) const;
};

}  // namespace ghostrank
