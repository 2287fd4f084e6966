// How a framework trains: its parallel dimensions and options, by framework.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "profiles/job/kfac_plan.h"
#include "profiles/units.h"
#include "profiles/workload/program.h"

namespace ghostrank {

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

}  // namespace ghostrank
