// Keys of a job: the framework and how it divides the work.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

constexpr double kMaxDegree = 1e6;  // for one dimension of parallelism

constexpr std::array kKeys{
    Key{"parallel.framework", KeyType::choice, "ddp", "framework whose plan the ranks follow", 0, 0,
        "ddp megatron fsdp torchtitan zero1 zero2 zero3 horovod torchrec dear wfbp mgwfbp "
        "bytescheduler kfac byteps phub"},
    Key{"parallel.dp", KeyType::integer, "0",
        "data-parallel ranks; 0: all GPUs that tp, cp and pp leave", 0, 1e9},
    Key{"parallel.micro_batch", KeyType::integer, "1", "samples per GPU and micro-batch", 1, 1e6},
    Key{"parallel.global_batch", KeyType::integer, "0",
        "samples per step of the whole job; 0: one micro-batch per data-parallel rank", 0, 1e9}
        .of("megatron torchtitan"),
    Key{"parallel.bucket_cap_mb", KeyType::number, "25", "gradient bucket size in MiB", 0, 1e6}
        .of("ddp torchrec")
        .unless("parallel.launch", "flat"),
    Key{"parallel.first_bucket_mb", KeyType::number, "1", "size of the first bucket in MiB", 0, 1e6}
        .of("ddp torchrec")
        .unless("parallel.launch", "flat"),
    Key{"parallel.launch", KeyType::choice, "overlap",
        "reduce buckets as they fill, all after backward, or everything in one; byteps, phub: "
        "tensor by tensor, overlap or after_backward; bytescheduler: partition by partition, or "
        "after backward a credit at a time",
        0, 0, "overlap after_backward flat"}
        .of("ddp bytescheduler byteps phub"),
    Key{"parallel.gradient_as_bucket_view", KeyType::boolean, "false",
        "gradients stay in the buckets that were reduced; else they are copied out of them, as "
        "PyTorch does unless told so"}
        .of("ddp"),
    Key{"parallel.tp", KeyType::integer, "1", "tensor-parallel ranks", 1, kMaxDegree}.of(
        "megatron torchtitan"),
    Key{"parallel.pp", KeyType::integer, "1", "pipeline stages", 1, kMaxDegree}.of(
        "megatron torchtitan"),
    Key{"parallel.cp", KeyType::integer, "1", "context-parallel ranks", 1, kMaxDegree}.of(
        "megatron torchtitan"),
    Key{"parallel.ep", KeyType::integer, "1", "expert-parallel ranks", 1, kMaxDegree}.of(
        "megatron torchtitan"),
    Key{"parallel.expert_tp", KeyType::integer, "0", "tensor-parallel ranks of an expert; 0: tp", 0,
        kMaxDegree}
        .of("megatron"),
    Key{"parallel.expert_dispatch", KeyType::choice, "alltoall",
        "a row travels to every expert of its token, or once to every node and from there once to "
        "every rank, as with DeepEP",
        0, 0, "alltoall deduplicated"}
        .of("megatron")
        .unless("parallel.ep", "1"),
    Key{"parallel.expert_imbalance", KeyType::number, "0",
        "relative standard deviation of the experts' loads, drawn from run.seed for every layer; "
        "0: "
        "tokens are routed evenly",
        0, 100}
        .of("megatron")
        .unless("parallel.ep", "1"),
    Key{"parallel.expert_load", KeyType::any, "[]",
        "loads of a layer's experts, relative to each other, as in [1, 1, 2.5, 0.5]; or a list of "
        "such lists, one for every layer with experts"}
        .of("megatron")
        .unless("parallel.ep", "1"),
    Key{"parallel.sequence_parallel", KeyType::boolean, "false",
        "split what tp replicates along the sequence"}
        .of("megatron")
        .unless("parallel.tp", "1"),
    Key{"parallel.schedule", KeyType::choice, "1f1b",
        "pipeline schedule; torchtitan: 1f1b, interleaved, zbv, dualpipev", 0, 0,
        "1f1b interleaved zb-h1 zbv dualpipe dualpipev"}
        .of("megatron torchtitan"),
    Key{"parallel.interleave", KeyType::integer, "1",
        "model chunks per pipeline stage; torchtitan: 1 means 2", 1, kMaxDegree}
        .of("megatron torchtitan")
        .where("parallel.schedule", "interleaved"),
    Key{"parallel.distributed_optimizer", KeyType::boolean, "false",
        "shard the optimizer over dp: reduce-scatter gradients, all-gather parameters"}
        .of("megatron"),
    Key{"parallel.overlap_grad_reduce", KeyType::boolean, "true",
        "reduce buckets while the last backward runs"}
        .of("megatron"),
    Key{"parallel.overlap_param_gather", KeyType::choice, "auto",
        "gather parameters while the next forward runs, which Megatron does only with "
        "overlap_grad_reduce; auto: as overlap_grad_reduce",
        0, 0, "auto true false"}
        .of("megatron")
        .where("parallel.distributed_optimizer", "true"),
    Key{"parallel.bucket_size", KeyType::integer, "0",
        "elements of a gradient bucket; 0: megatron: the larger of 40,000,000 and 1,000,000 dp cp; "
        "zero: 500,000,000",
        0, 1e12}
        .of("megatron zero1 zero2 zero3")
        .where("parallel.overlap_grad_reduce", "true"),
    Key{"parallel.recompute", KeyType::choice, "none",
        "what the backward computes again: nothing; the attention core (megatron), all but half of "
        "the products, attention and what calls left (torchtitan, fsdp); whole layers",
        0, 0, "none selective full"}
        .of("megatron torchtitan fsdp"),
    Key{"parallel.attention", KeyType::choice, "fused",
        "the attention core: one kernel that keeps scores on the chip (FlashAttention), or "
        "products "
        "and softmax of scores in memory, as Megatron-LM had it until 2022",
        0, 0, "fused unfused"}
        .of("megatron"),
    Key{"parallel.gradient_accumulation_fusion", KeyType::boolean, "true",
        "products add weights' gradients to their buffer, Megatron-LM's default since 2022; else "
        "a kernel of its own does"}
        .of("megatron"),
    Key{"parallel.blocking_wait", KeyType::boolean, "false",
        "the host waits for each tensor-parallel call before it launches more kernels, as under "
        "PyTorch's TORCH_NCCL_BLOCKING_WAIT=1"}
        .of("megatron"),
    Key{"parallel.async_tensor_model_parallel_allreduce", KeyType::boolean, "true",
        "without sequence parallelism the all-reduce of a gradient runs beside the product of the "
        "weight's gradient, Megatron-LM's default since 2022; else after it"}
        .of("megatron")
        .unless("parallel.tp", "1")
        .unless("parallel.sequence_parallel", "true"),
    Key{"parallel.tp_comm_overlap", KeyType::boolean, "false",
        "Transformer Engine's overlap of tensor-parallel calls: products and the calls around them "
        "are cut in parts that follow each other; needs sequence_parallel, dense layers, and tp "
        "within a node"}
        .of("megatron")
        .unless("parallel.tp", "1"),
    Key{"parallel.compile", KeyType::boolean, "false",
        "torch.compile for every layer, which fuses its pointwise kernels"}
        .of("ddp fsdp torchtitan zero1 zero2 zero3 horovod"),
    Key{"parallel.optimizer_implementation", KeyType::choice, "auto",
        "of PyTorch's optimizer: one kernel for all of a step, or one for each of its operations; "
        "auto: torchtitan: fused, else PyTorch's default, foreach",
        0, 0, "auto fused foreach"}
        .of("ddp fsdp torchtitan horovod"),
    Key{"parallel.scatter_gather_tensors_in_pipeline", KeyType::boolean, "false",
        "without sequence parallelism tp ranks send a part each to the next stage, which gathers "
        "it, "
        "as Megatron-LM did until 2022, instead of all of it each",
        0, 0}
        .of("megatron")
        .unless("parallel.pp", "1")
        .unless("parallel.tp", "1"),
    Key{"parallel.make_vocab_size_divisible_by", KeyType::integer, "128",
        "the vocabulary is padded to a multiple of this times tp", 1, 1e6}
        .of("megatron"),
    Key{"parallel.cp_comm", KeyType::choice, "auto",
        "how context-parallel ranks share keys and values: in a ring, gathered, heads against "
        "sequence (Ulysses), or that among neighbours and a ring between them; auto: megatron: "
        "p2p; torchtitan: all_gather",
        0, 0, "auto p2p all_gather a2a a2a+p2p"}
        .of("megatron torchtitan")
        .unless("parallel.cp", "1"),
    Key{"parallel.cp_a2a", KeyType::integer, "1", "neighbours that exchange heads", 1, kMaxDegree}
        .of("megatron")
        .where("parallel.cp_comm", "a2a+p2p"),
    Key{"parallel.order", KeyType::string, "tp-cp-ep-dp-pp",
        "dimensions of parallelism, the innermost first"}
        .of("megatron"),
    Key{"parallel.account_for_embedding_in_pipeline_split", KeyType::boolean, "false",
        "the embedding takes the place of a layer in the first stage"}
        .of("megatron")
        .unless("parallel.pp", "1"),
    Key{"parallel.account_for_loss_in_pipeline_split", KeyType::boolean, "false",
        "the head takes the place of a layer in the last stage"}
        .of("megatron")
        .unless("parallel.pp", "1"),
    Key{"parallel.decoder_first_pipeline_num_layers", KeyType::integer, "0",
        "layers of the first stage; the others share the rest; 0: like the others", 0, 1e6}
        .of("megatron"),
    Key{"parallel.decoder_last_pipeline_num_layers", KeyType::integer, "0",
        "layers of the last stage, likewise", 0, 1e6}
        .of("megatron"),
    Key{"parallel.pipeline_model_parallel_layout", KeyType::string, "",
        "what every part of the pipeline holds, as in Ettt|(tt|)*14,tL: E the embedding, t a "
        "layer, "
        "m a module of multi-token prediction, L head and loss; empty: an even split"}
        .of("megatron"),

    Key{"parallel.dp_replicate", KeyType::integer, "1",
        "hybrid sharding: groups of neighbouring ranks that hold a whole model each", 1, kMaxDegree}
        .of("fsdp torchtitan"),
    Key{"parallel.reshard_after_forward", KeyType::choice, "default",
        "whether parameters are freed after the forward pass and gathered again for the backward "
        "pass; default: fsdp all units, torchtitan all but the last, and none of a pipeline",
        0, 0, "default always never"}
        .of("fsdp torchtitan"),
    Key{"parallel.prefetch", KeyType::integer, "1",
        "units whose parameters are gathered ahead of the one computed", 0, 1000}
        .of("fsdp torchtitan"),
    Key{"parallel.overlap_comm", KeyType::choice, "auto",
        "the backward pass continues during a reduction; auto: in stage 3", 0, 0, "auto true false"}
        .of("zero1 zero2 zero3"),
    Key{"parallel.use_multi_rank_bucket_allreduce", KeyType::boolean, "true",
        "all-reduce a bucket; else reduce each rank's partition of it to that rank"}
        .of("zero1 zero2"),
    Key{"parallel.stage3_prefetch_bucket_size", KeyType::integer, "50000000",
        "elements gathered ahead at a time", 0, 1e15}
        .of("zero3"),
    Key{"parallel.stage3_param_persistence_threshold", KeyType::integer, "100000",
        "tensors with at most so many elements are not sharded", 0, 1e15}
        .of("zero3"),
    Key{"parallel.stage3_max_live_parameters", KeyType::integer, "1000000000",
        "gathered elements beyond which nothing is gathered ahead", 0, 1e15}
        .of("zero3"),
    Key{"parallel.stage3_max_reuse_distance", KeyType::integer, "1000000000",
        "parameters used again within so many elements stay gathered", 0, 1e15}
        .of("zero3"),
    Key{"parallel.table_placement", KeyType::choice, "greedy",
        "where embedding tables go: greedy: the one with most lookups first, to the rank "
        "with least; random: drawn from run.seed",
        0, 0, "greedy random"}
        .of("torchrec"),
    Key{"parallel.row_wise_above", KeyType::integer, "0",
        "tables with more rows are split by rows over all ranks; 0: none", 0, 1e12}
        .of("torchrec"),
    Key{"parallel.fusion_mb", KeyType::number, "128", "size of the fusion buffer in MiB", 0, 1e6}
        .of("horovod"),
    Key{"parallel.cycle_ms", KeyType::number, "1", "time between two checks for ready gradients",
        0.001, 1e6}
        .of("horovod bytescheduler kfac"),
    Key{"parallel.fusion", KeyType::choice, "size",
        "which modules share a call: as many as stay below threshold_mb; nearby_layers of them; "
        "those whose gradients become ready within wait_ms; or none",
        0, 0, "size layers waiting_time none"}
        .of("dear"),
    Key{"parallel.threshold_mb", KeyType::number, "25", "size of a group of modules in MiB", 0, 1e6}
        .of("dear")
        .where("parallel.fusion", "size"),
    Key{"parallel.nearby_layers", KeyType::integer, "4", "modules of a group", 1, 1e6}
        .of("dear")
        .where("parallel.fusion", "layers"),
    Key{"parallel.wait_ms", KeyType::number, "5", "time from a group's first gradients to its last",
        0.001, 1e6}
        .of("dear")
        .where("parallel.fusion", "waiting_time"),
    Key{"parallel.decouple", KeyType::choice, "reduce_scatter",
        "the two halves of an all-reduce: reduce_scatter, then an all-gather; reduce, then a "
        "broadcast",
        0, 0, "reduce_scatter reduce"}
        .of("dear"),
    Key{"parallel.tune", KeyType::choice, "none",
        "bo: `ghostrank run` first looks for the fastest parallel.threshold_mb (dear), or "
        "parallel.fusion_mb and parallel.cycle_ms (horovod), by Bayesian optimisation over steps "
        "that it plays",
        0, 0, "none bo"}
        .of("dear horovod")
        .on("memory virtual")
        .where("parallel.fusion", "size"),
    Key{"parallel.allreduce_cost", KeyType::choice, "cluster",
        "what the scheduler takes a call to cost: a ring over the cluster's slowest link; or as "
        "MG-WFBP's authors fitted it on two clusters of up to 64 GPUs, or SPD-KFAC's on 64",
        0, 0, "cluster 10gbe 100gbrdma spdkfac"}
        .of("mgwfbp bytescheduler kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.partition_bytes", KeyType::integer, "0",
        "largest piece of a tensor; 0: bytescheduler 4,000,000, byteps 4,096,000, phub 32,768", 0,
        kMaxSize}
        .of("bytescheduler byteps phub"),
    Key{"parallel.credit_bytes", KeyType::string, "auto",
        "pieces of so many bytes are handed over at a time, one at least; auto: bytescheduler "
        "16,000,000; byteps unlimited, in mode bound two pieces for every server"}
        .of("bytescheduler byteps"),
    Key{"parallel.mode", KeyType::choice, "fidelity",
        "which server sums a partition: the one that the hash of its key names, or so that each "
        "server gets exactly the share of the best split",
        0, 0, "fidelity bound"}
        .of("byteps"),
    Key{"parallel.key_hash", KeyType::choice, "djb2",
        "BYTEPS_KEY_HASH_FN; mixed needs servers.placement: mixed", 0, 0,
        "djb2 naive sdbm built_in mixed"}
        .of("byteps")
        .where("parallel.mode", "fidelity"),
    Key{"parallel.server_schedule", KeyType::boolean, "false",
        "BYTEPS_SERVER_ENABLE_SCHEDULE: a server's core takes the key with the fewest pushes so "
        "far, not the push that came first"}
        .of("byteps"),
    Key{"parallel.asynchronous", KeyType::boolean, "false",
        "BYTEPS_ENABLE_ASYNC: servers add pushes to what they store, and answer without waiting "
        "for other nodes"}
        .of("byteps"),
    Key{"parallel.server_timeout_us", KeyType::number, "0",
        "a server that owes an answer and is silent for so long is asked, and after as long again "
        "it is dead; 0: it is waited for",
        0, kMaxMicros}
        .of("byteps"),
    Key{"parallel.elastic", KeyType::boolean, "false",
        "the other servers take the keys of a dead one; else the run ends"}
        .of("byteps")
        .unless("parallel.server_timeout_us", "0"),
    Key{"parallel.learning_rate", KeyType::number, "0.1",
        "by which servers step weights: w -= rate (g + momentum v), where g is the sum over the "
        "ranks",
        0, 1e6}
        .of("phub"),
    Key{"parallel.momentum", KeyType::number, "0.9", "of these steps: v = momentum v + g", 0, 1}.of(
        "phub"),
    Key{"parallel.rack_nics", KeyType::integer, "0",
        "NICs of each server that carry only what servers of different racks exchange (with "
        "collectives.allreduce: phub_racks)",
        0, 1023}
        .of("phub"),
    Key{"parallel.variant", KeyType::choice, "spd",
        "how the second order is distributed: not at all (ssgd), by D-KFAC, MPD-, SPD-, PAD- or "
        "DP-KFAC",
        0, 0, "spd ssgd d mpd pad dp"}
        .of("kfac"),
    Key{"parallel.factor_launch", KeyType::choice, "auto",
        "factors are computed and reduced in hooks of the passes, or after the backward; auto: as "
        "the variant's authors do",
        0, 0, "auto overlap after_backward"}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.factor_fusion", KeyType::choice, "auto",
        "factors that share a call: none; the two of a layer; up to factor_mb; or by MG-WFBP's "
        "rule along each pass; auto: as the variant's authors do",
        0, 0, "auto none layer threshold optimal"}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.factor_mb", KeyType::number, "64", "size of a call of factors in MiB", 0, 1e6}
        .of("kfac")
        .where("parallel.factor_fusion", "threshold"),
    Key{"parallel.inverse_placement", KeyType::choice, "auto",
        "who inverts a factor: every rank; ranks in turn; the least loaded rank (SPD-KFAC's LBP); "
        "blocks of neighbours (PAD-KFAC's); auto: as the variant's authors do",
        0, 0, "auto none round_robin lbp block"}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.local_below", KeyType::integer, "1024",
        "lbp: every rank inverts factors of a smaller dimension itself, and nobody sends them", 0,
        1e9}
        .of("kfac")
        .where("parallel.inverse_placement", "auto lbp")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.second_order", KeyType::choice, "auto",
        "who inverts broadcasts the inverse, or the preconditioned gradients of the layer; auto: "
        "as the variant's authors do",
        0, 0, "auto inverses gradients"}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.fac_update_freq", KeyType::integer, "1", "steps from one update of factors on", 1,
        1000}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.kfac_update_freq", KeyType::integer, "1", "steps from one update of inverses on",
        1, 1000}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.kfac_cost", KeyType::choice, "device",
        "how long inverses (and, rtx2080ti, products and Horovod's requests) of K-FAC take: by the "
        "device's FLOPs, as fitted to measurements on 64 RTX 2080 Ti, or by SPD-KFAC's published "
        "model of one",
        0, 0, "device rtx2080ti spdkfac"}
        .of("kfac"),
    Key{"parallel.exclude", KeyType::choice, "nothing",
        "parts that are left out, to see what each adds: sending inverses; that and inverting; "
        "those and reducing factors",
        0, 0, "nothing inverse_comm inverses factor_comm"}
        .of("kfac")
        .unless("parallel.variant", "ssgd")};

}  // namespace

std::span<const Key> parallel() { return kKeys; }

}  // namespace ghostrank::job_tables
