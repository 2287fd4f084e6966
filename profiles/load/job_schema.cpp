#include "profiles/load/job_schema.h"

#include <array>

namespace ghostrank {
namespace {

constexpr double kMaxMicros = 1e9;
// 2^53 - 1: every JSON reader keeps integers up to it exactly.
constexpr double kMaxSeed = 9007199254740991;
constexpr double kMaxSize = 1LL << 40;
constexpr double kMaxRate = 1e18;
constexpr double kMaxDegree = 1e6;  // for one dimension of parallelism

// Methods of compression whose payload's size follows from the data.
constexpr std::string_view kDecidedByData =
    "threshold dgc adaq redsync gaussian_ksgd sidco-e sidco-p sidco-gp inceptionn";
constexpr auto kLater = false;  // for Key::available

constexpr std::array kKeys{
    Key{"schema", KeyType::choice, kJobSchema, "form of the file", 0, 0, kJobSchema},
    Key{"model", KeyType::profile, kAbsent,
        "what is trained: a name in profiles/models, a path (.yaml, .csv) or a mapping"},
    Key{"program", KeyType::any, kAbsent,
        "programs as `ghostrank plan --programs` writes them, or the path of such a file, played "
        "as they are: model, device, precision and parallel then only say where they came from"},
    Key{"trace", KeyType::any, kAbsent,
        "trace of a real run, played in place of model and parallel: a file, a folder or a pattern "
        "(run/*.et), a list of them, or {files, format, ranks}; also what `ghostrank profile "
        "import` wrote"},
    Key{"device", KeyType::profile, kAbsent,
        "GPU that computes: a name in profiles/devices, a path or a mapping; not needed for "
        "measured layers"},

    Key{"jobs", KeyType::any, kAbsent,
        "several jobs on this cluster and fabric, in place of model, trace or program: "
        "[{name: a, file: a.yaml, nodes: 0-7}, ...]"},

    Key{"precision.parameters", KeyType::choice, "fp32", "type of the matrix products", 0, 0,
        "fp32 float32 bf16 bfloat16 fp16 float16 int32", "fp8"},
    Key{"precision.gradients", KeyType::choice, "fp32",
        "type in which gradients are reduced; without it that of a measured model", 0, 0,
        "fp32 float32 bf16 bfloat16 fp16 float16 int32", "fp8"},
    Key{"precision.optimizer", KeyType::choice, "adam",
        "decides the bytes that the optimizer moves through memory", 0, 0, "adam sgd"},

    Key{"cluster.base", KeyType::string, "",
        "profile in profiles/clusters (or a path) whose values are taken where none are given"},
    Key{"cluster.nodes", KeyType::integer, "1", "emulated nodes", 1, 1e6},
    Key{"cluster.gpus_per_node", KeyType::integer, "8", "GPUs, and so ranks, of a node", 1, 1024},
    Key{"cluster.nics_per_node", KeyType::integer, "8", "NICs of a node", 1, 1024},
    Key{"cluster.nic.rate", KeyType::rate, "400Gbps", "rate of a NIC, each direction", 0, kMaxRate},
    Key{"cluster.nic.rates", KeyType::string, "",
        "CSV file of rates that change in time, as seconds,rate; or with columns such as n0, n0-3 "
        "and n2.nic1 for some NICs; none is above cluster.nic.rate, by which libraries go on "
        "choosing"},
    Key{"cluster.nic.latency_us", KeyType::number, "2",
        "one-way latency from NIC to NIC through an idle fabric; only recorded on ofi", 0,
        kMaxMicros},
    Key{"cluster.intra_node.rate", KeyType::rate, "3600Gbps",
        "rate of a GPU's links inside its node", 0, kMaxRate},
    Key{"cluster.intra_node.latency_us", KeyType::number, "1", "one way inside a node", 0,
        kMaxMicros},
    Key{"cluster.storage_nodes", KeyType::integer, "0",
        "storage nodes for background traffic, numbered after the other nodes and with the same "
        "NICs",
        0, 1e6},
    Key{"servers.count", KeyType::integer, "0",
        "machines for the helpers of schemes (collectives/agent.h), numbered after the nodes of "
        "GPUs",
        0, 1e6},
    Key{"servers.placement", KeyType::string, "dedicated",
        "where helpers go: dedicated: a node for each server; colocated: beside the GPUs of the "
        "nodes in turn, with their NICs; mixed: the dedicated ones, then one beside the GPUs of "
        "every node; or a plugin's"},
    Key{"servers.nics", KeyType::integer, "1", "NICs of a dedicated server", 1, 1024}
        .unless("servers.count", "0")
        .unless("servers.placement", "colocated"),
    Key{"servers.nic.rate", KeyType::rate, "400Gbps", "rate of a server's NIC, each direction", 0,
        kMaxRate}
        .unless("servers.count", "0")
        .unless("servers.placement", "colocated"),
    Key{"servers.nic.latency_us", KeyType::number, "2",
        "one-way latency from NIC to NIC between servers; between a server and a GPU's node, the "
        "mean of both",
        0, kMaxMicros}
        .unless("servers.count", "0")
        .unless("servers.placement", "colocated"),
    Key{"servers.cores", KeyType::integer, "8",
        "cores that sum, of every machine with servers; a key stays on one of them", 1, 4096}
        .with_schemes(),
    Key{"servers.add_GBps", KeyType::number, "20",
        "bytes that a core adds or copies a second, in 1e9, as `ghostrank calibrate host` measures "
        "them; 0: takes no time",
        0, 1e6}
        .with_schemes(),
    Key{"servers.optimizer_GBps", KeyType::number, "10",
        "bytes of weights that a core steps a second, in 1e9; 0: takes no time", 0, 1e6}
        .with_schemes(),
    Key{"servers.memory_GBps", KeyType::number, "80",
        "bytes that the memory of such a machine reads and writes a second, for all cores, in 1e9: "
        "2 per byte copied, 3 per byte added, 5 per byte of weights stepped; 0: takes no time",
        0, 1e6}
        .with_schemes(),
    Key{"servers.fails", KeyType::integer, "-1",
        "number of a server that stops and never returns; -1: none does", -1, 1e6}
        .on("memory virtual")
        .of("byteps"),
    Key{"servers.fails_at_us", KeyType::number, "0", "when it does, in the measured iterations", 0,
        kMaxMicros}
        .unless("servers.fails", "-1"),
    Key{"switch.target", KeyType::choice, "model",
        "what plays the switch of schemes such as switchml: a model in the network of memory and "
        "virtual, on ofi software on one of the servers; or a real one between the nodes: "
        "ghostrank's C++ switch or its P4 program on DPDK, which the run starts on this machine, "
        "or one that runs",
        0, 0, "model compiled dpdk external", "bmv2"}
        .on("ofi packets"),
    Key{"switch.address", KeyType::string, "",
        "IPv4 address of the switch, in the network of the ranks"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk external"),
    Key{"switch.mac", KeyType::string, "auto",
        "its MAC address, made known to the ranks' interfaces (needs root); auto: "
        "02:00:00:00:ff:01 of a switch that is started, else ARP finds it"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk external"),
    Key{"switch.ports", KeyType::string, "",
        "the switch's interface to each emulated node, as in port{node}"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk"),
    Key{"switch.namespace", KeyType::string, "",
        "network namespace of these interfaces; empty: that of the process"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk"),
    Key{"switch.loss", KeyType::number, "0",
        "share of a scheme's packets that the switch loses on purpose at every port, each way, "
        "drawn from run.seed",
        0, 0.99}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk"),
    Key{"switch.program", KeyType::string, "",
        "another program than ghostrank's, as given or next to the job: a .spec as p4c-dpdk writes "
        "it; without switch.entries one with the same tables"}
        .on("ofi packets")
        .where("switch.target", "dpdk"),
    Key{"switch.entries", KeyType::string, "",
        "its table entries and registers, as given or next to the job (docs/switch.md): the run "
        "then "
        "tells the switch nothing else"}
        .on("ofi packets")
        .where("switch.target", "dpdk"),
    Key{"switch.socket", KeyType::string, "",
        "control socket of the switch (`ghostrank switch run --socket`), to tell it of the job; "
        "empty: it knows"}
        .on("ofi packets")
        .where("switch.target", "external"),
    Key{"switch.worker_port", KeyType::integer, "4000",
        "UDP port of the ranks to which the switch sends; every further communicator has the "
        "next but fifteen",
        1024, 65000}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk external"),
    Key{"switch.slots", KeyType::integer, "512",
        "slots of each communicator on the switch of a rail, and so the most packets that a worker "
        "has in flight",
        1, 16384}
        .with_schemes(),
    Key{"switch.packet_elements", KeyType::choice, "256", "elements of a packet", 0, 0, "32 64 256"}
        .with_schemes(),
    Key{"switch.memory_slots", KeyType::integer, "8192",
        "slots of one switch, for all communicators that it serves; those of a rail and a rack of "
        "32 nodes share one",
        1, 1'000'000}
        .on("memory virtual")
        .with_schemes(),
    Key{"switch.packet_rate_mpps", KeyType::number, "0",
        "millions of packets that one switch takes per second, of all communicators; 0: any number",
        0, 1e6}
        .on("memory virtual")
        .with_schemes(),
    Key{"switch.trees", KeyType::integer, "1",
        "trees for streaming that a switch of sharp has active at a time; a communicator that gets "
        "none reduces around a ring",
        0, 1'000'000}
        .with_schemes(),
    Key{"switch.trees_of", KeyType::choice, "switch",
        "what has so many trees: the switch (Quantum), or each of its ports (Quantum-2)", 0, 0,
        "switch port"}
        .with_schemes(),
    Key{"switch.timeout_us", KeyType::number, "10000",
        "time without an answer after which a packet is sent again", 1, kMaxMicros}
        .with_schemes(),
    Key{"switch.fallback_after_us", KeyType::number, "1000000",
        "silence of the switch after which the ranks sum around a ring, for the rest of the job; "
        "0: never (docs/switch.md)",
        0, kMaxMicros}
        .with_schemes("switchml"),
    Key{"switch.fails_at_us", KeyType::integers, "[]",
        "times in the measured iterations at which modelled switches fail: what they held is gone",
        0, kMaxMicros}
        .on("memory virtual")
        .with_schemes("switchml"),
    Key{"switch.away_us", KeyType::number, "0",
        "time that the switches stay away after they have failed", 0, kMaxMicros}
        .on("memory virtual")
        .with_schemes("switchml"),
    Key{"omnireduce.block", KeyType::integer, "256",
        "elements of a block, which is sent if one of them is not zero", 1, 1e6}
        .with_schemes("omnireduce"),
    Key{"omnireduce.carriage", KeyType::choice, "reliable",
        "reliable: messages that are never lost, Algorithm 1; packets: packets of a block each "
        "that may be lost, Algorithm 2",
        0, 0, "reliable packets"}
        .with_schemes("omnireduce"),
    Key{"omnireduce.columns", KeyType::integer, "4",
        "most blocks of a message, each of a column of its own (block fusion)", 1, 1024}
        .with_schemes("omnireduce")
        .where("omnireduce.carriage", "reliable"),
    Key{"omnireduce.slots", KeyType::integer, "64",
        "slots of each aggregator, and so the most messages that a rank has on the way to it", 1,
        32768}
        .with_schemes("omnireduce"),
    Key{"omnireduce.timeout_us", KeyType::number, "10000",
        "time without an answer after which a packet is sent again", 1, kMaxMicros}
        .with_schemes("omnireduce")
        .where("omnireduce.carriage", "packets"),
    Key{"cluster.topology.kind", KeyType::string, "nonblocking",
        "the modelled fabric between nodes: nonblocking or single_switch: one ideal switch; "
        "leaf_spine: leaves and spines, each node on one leaf; rail_optimised: the same, NIC i of "
        "a node on a leaf of rail i; rail_only: a switch for each rail; fat_tree: leaves, spines "
        "in pods, cores; or a file of links (.csv, .json, .yaml), as given or next to the job; a "
        "real one is as it is"}
        .on("memory virtual"),
    Key{"cluster.topology.places", KeyType::integer, "0",
        "nodes that the fabric has room for; 0: as many as the job has", 0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.placement", KeyType::choice, "packed",
        "which of these places the job's nodes take: packed: the first; spread: in turn over the "
        "pods of a fat tree, else over the leaves; random: drawn from run.seed",
        0, 0, "packed spread random"}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.pods", KeyType::integer, "0",
        "pods of leaves and spines; 0: one for every 32 leaves", 0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "fat_tree"),
    Key{"cluster.topology.leaves", KeyType::integer, "0",
        "leaf switches, which neighbouring nodes share; 0: one for every 32 NICs, two at least; "
        "rail_optimised: one a rail for every 32 nodes",
        0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.spines", KeyType::integer, "0",
        "spine switches, with a link to every leaf; fat_tree: of a pod; 0: so many that a link has "
        "a NIC's rate, at most 64",
        0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.cores", KeyType::integer, "0",
        "core switches, each connected to one spine of every pod; 0: so many that a link is about "
        "as fast as those below, at most 64 a spine",
        0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "fat_tree"),
    Key{"cluster.topology.oversubscription", KeyType::number, "1",
        "rates of a leaf's NICs to those of its up-links", 0.001, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.pod_oversubscription", KeyType::number, "1",
        "rates of a spine's links down to those of its links to cores", 0.001, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "fat_tree"),
    Key{"cluster.topology.uplink_rate", KeyType::string, "auto",
        "rate of a link between a leaf and a spine, each direction; auto: by oversubscription"}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.failed", KeyType::any, "[]",
        "links that have failed, both directions: a list of names such as leaf0-spine1"}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.degraded", KeyType::any, "{}",
        "links with another rate, both directions: a mapping such as {leaf0-spine1: 100Gbps}"}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.link_latency_us", KeyType::number, "0",
        "latency that each link between switches adds to cluster.nic.latency_us", 0, kMaxMicros}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.routing", KeyType::string, "ecmp",
        "which of the shortest paths: ecmp: by a hash of the connection; static: the target's NIC "
        "modulo paths; spray: message by message in turn; or a plugin's"}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),

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
        "tensor by tensor, overlap or after_backward",
        0, 0, "overlap after_backward flat"}
        .of("ddp byteps phub"),
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
    Key{"parallel.overlap_param_gather", KeyType::boolean, "true",
        "gather parameters while the next forward runs"}
        .of("megatron")
        .where("parallel.distributed_optimizer", "true"),
    Key{"parallel.bucket_size", KeyType::integer, "0",
        "elements of a gradient bucket; 0: megatron: the larger of 40,000,000 and 1,000,000 dp; "
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
        .of("horovod kfac"),
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
        .on("memory virtual"),
    Key{"parallel.allreduce_cost", KeyType::choice, "cluster",
        "what the scheduler takes a call to cost: a ring over the cluster's slowest link; or as "
        "MG-WFBP's authors fitted it on two clusters of up to 64 GPUs, or SPD-KFAC's on 64",
        0, 0, "cluster 10gbe 100gbrdma spdkfac"}
        .of("mgwfbp bytescheduler kfac"),
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
        "how long inverses (and, rtx2080ti, products) of K-FAC take: by the device's FLOPs, as "
        "fitted to measurements on an RTX 2080 Ti, or by SPD-KFAC's published model of one",
        0, 0, "device rtx2080ti spdkfac"}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),
    Key{"parallel.exclude", KeyType::choice, "nothing",
        "parts that are left out, to see what each adds: sending inverses; that and inverting; "
        "those and reducing factors",
        0, 0, "nothing inverse_comm inverses factor_comm"}
        .of("kfac")
        .unless("parallel.variant", "ssgd"),

    Key{"collectives.library", KeyType::string, "generic",
        "library whose algorithms and schedules are played: generic, gloo, openmpi-4.1, nccl-2.28, "
        "nccl-2.30, or a "
        "plugin's (what that lacks is generic's)"},
    Key{"collectives.plugins", KeyType::any, "[]",
        "shared objects with your own algorithms, routings and placements: a list of paths, as "
        "given or next to the job"},
    Key{"collectives.allreduce", KeyType::string, "auto",
        "algorithm, as `ghostrank schedule` names it; auto: the library's own "
        "choice; lib/name: another "
        "library's; x.xml: an MSCCL file, as given or next to the job"},
    Key{"collectives.reduce_scatter", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_gather", KeyType::string, "auto", "likewise"},
    Key{"collectives.broadcast", KeyType::string, "auto", "likewise"},
    Key{"collectives.reduce", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_to_all", KeyType::string, "auto", "likewise"},
    Key{"collectives.send_recv", KeyType::string, "auto", "likewise"},
    Key{"collectives.barrier", KeyType::string, "auto", "likewise"},
    Key{"collectives.gather", KeyType::string, "auto", "likewise"},
    Key{"collectives.scatter", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_gather_v", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_to_all_v", KeyType::string, "auto", "likewise"},
    Key{"collectives.channels", KeyType::integer, "0",
        "rings (or trees) that share the data; 0: one per NIC of a node", 0, 64}
        .in("generic nccl plugin"),
    Key{"collectives.slice", KeyType::size, "0",
        "largest message, into which blocks are cut; 0: one message per block", 0, kMaxSize}
        .in("generic plugin"),
    Key{"collectives.credits", KeyType::integer, "0",
        "messages of a connection that may be in flight; 0: unlimited", 0, 1e6}
        .in("generic plugin"),
    Key{"collectives.protocol", KeyType::choice, "auto", "how messages are framed; auto: tuned", 0,
        0, "auto Simple LL LL128"}
        .in("nccl"),
    Key{"collectives.max_channels", KeyType::integer, "0",
        "channels that one call may use; 0: the tuner's limit", 0, 64}
        .in("nccl"),
    Key{"collectives.node_template", KeyType::string, "auto",
        "kind of node that its rings and trees were found on, such as hgx-h100-400g, or the path "
        "of a "
        "graph dump or topology file of NCCL (.xml); auto: a node with the cluster's GPUs and NICs"}
        .in("nccl"),
    Key{"collectives.node_cpu", KeyType::choice, "auto",
        "whose CPUs a node has: NCCL's rates differ; auto: Intel's, or a described node's own", 0,
        0, "auto intel amd"}
        .in("nccl"),
    Key{"collectives.environment", KeyType::any, "{}",
        "NCCL's environment variables, as in {NCCL_ALGO: Ring}; those of the process have no "
        "effect"}
        .in("nccl"),
    Key{"collectives.groups", KeyType::any, "{}",
        "algorithms for some kinds of group, as in {dp: {allreduce: ring}}"},

    Key{"tensors.density", KeyType::number, "1",
        "share of a gradient's blocks that are not zero, on every rank: of B blocks, round(density "
        "* B), drawn for every step from run.seed; schemes may leave out the others, and "
        "run.verify sums up real data like that",
        0, 1},
    Key{"tensors.last_density", KeyType::number, "0",
        "density of the last iteration: from tensors.density in the first (warm-up included) it "
        "changes by the same factor in every iteration; 0: it stays",
        0, 1},
    Key{"tensors.block", KeyType::integer, "256", "elements of such a block", 1, 1e12}.unless(
        "tensors.density", "1"),
    Key{"tensors.overlap", KeyType::string, "random",
        "how the blocks of ranks coincide: random: each draws its own; all: they are the same; "
        "none: no two ranks have the same one; or the path of a file of measured overlaps, of all "
        "or by tensor, from which the density follows"}
        .unless("tensors.density", "1"),
    Key{"tensors.distribution", KeyType::any, "laplace",
        "distribution of the gradients' values, for methods of compression that send what the "
        "data decide: laplace, gaussian, gamma SHAPE, pareto SHAPE, or measured FILE, a CSV file "
        "of magnitude,count or magnitude,count,tensor; or rules by tensor, of which the first that "
        "matches counts: [{tensors: '*.bias', law: gaussian}, {law: gamma 0.5, scale: 0.01, drift: "
        "{shape: 1.01}}]",
        0, 0, "LAW"}
        .where("compression.method", kDecidedByData),
    Key{"tensors.scale", KeyType::number, "0.001", "their mean magnitude (not of measured)", 1e-30,
        1e30}
        .where("compression.method", kDecidedByData),
    Key{"tensors.drift", KeyType::any, "{}",
        "how the distribution moves: in iteration i (warm-up included) the scale and the shape are "
        "those given times these factors to the power of i, or of `until` after that iteration, as "
        "in {scale: 0.98, shape: 1.01, until: 100}"}
        .where("compression.method", kDecidedByData),
    Key{"tensors.embeddings", KeyType::choice, "dense",
        "gradients of embedding tables: dense, as all others; or zipf: only rows whose ids a rank "
        "has drawn from Zipf's law in the step are not zero, row 0 being the most frequent",
        0, 0, "dense zipf"}
        .of("ddp"),
    Key{"tensors.zipf_exponent", KeyType::number, "1",
        "row k has a share of the ids in proportion to (k + 1) to the power of minus this", 0, 10}
        .where("tensors.embeddings", "zipf"),
    Key{"compression.method", KeyType::string, "none",
        "how gradients are compressed before ranks exchange them: none, a method of "
        "docs/compression.md (fp16, topk, randomk, qsgd, powersgd, dgc, sidco-e, ...), or a "
        "plugin's; ddp, horovod, wfbp, mgwfbp; byteps: by roots and servers"},
    Key{"compression.ratio", KeyType::number, "0.01",
        "share of a tensor's elements that is sent, by methods that leave out some", 1e-9, 1}
        .unless("compression.method", "none")
        .where("compression.budget_ms", "0"),
    Key{"compression.budget_ms", KeyType::number, "0",
        "ratios follow the network, in place of compression.ratio: step by step a controller "
        "chooses that of every tensor, so that exchanges end so long after the last gradients; 0: "
        "they do not (topk, randomk)",
        0, 1e6}
        .of("ddp")
        .unless("compression.method", "none"),
    Key{"compression.least_ratio", KeyType::number, "1e-04",
        "ratio that the controller always sends", 1e-9, 1}
        .unless("compression.budget_ms", "0"),
    Key{"compression.most_ratio", KeyType::number, "0.5", "ratio that it never exceeds", 1e-9, 1}
        .unless("compression.budget_ms", "0"),
    Key{"compression.communicator", KeyType::choice, "auto",
        "how payloads are exchanged: added up; gathered; broadcast by one rank after the other; or "
        "part by part, whose sums are compressed again; auto: as the method demands",
        0, 0, "auto all_reduce all_gather broadcast all_to_all"}
        .unless("compression.method", "none"),
    Key{"compression.quantum", KeyType::integer, "64", "levels above 0", 1, 32767}.where(
        "compression.method", "qsgd"),
    Key{"compression.threshold", KeyType::number, "0.01", "magnitudes above it are sent", 1e-30,
        1e30}
        .where("compression.method", "threshold"),
    Key{"compression.rank", KeyType::integer, "1", "rank of the approximation", 1, 1024}.where(
        "compression.method", "powersgd"),
    Key{"compression.quantiles", KeyType::integer, "64", "buckets of equal counts", 2, 65536}.where(
        "compression.method", "sketch"),
    Key{"compression.error_bound", KeyType::number, "2e-10", "decides how many bits exponents get",
        1e-30, 0.1}
        .where("compression.method", "inceptionn"),
    Key{"compression.stages", KeyType::auto_integer, "auto",
        "fits of the threshold; auto: as many as the ratio asks for", 1, 64}
        .where("compression.method", "sidco-e sidco-p sidco-gp"),
    Key{"compression.costs", KeyType::string, "v100",
        "how long compressing and decompressing take: v100: as fitted to a V100, or bounded from "
        "below; a measured table by its name in profiles/costs; or the path of a CSV file as "
        "`ghostrank calibrate compression --csv FILE` writes it"}
        .unless("compression.method", "none"),
    Key{"compression.gather_us", KeyType::number, "0",
        "what the host adds to each gathering of payloads, as by staging them in its memory", 0,
        1e9}
        .unless("compression.method", "none"),
    Key{"compression.gather_ns", KeyType::number, "0",
        "likewise, to each byte that a rank receives", 0, 1e6}
        .unless("compression.method", "none"),
    Key{"compression.memory", KeyType::choice, "none",
        "what ranks keep of gradients that were not sent, and add to the next; nesterov: with "
        "momentum; efsignsgd and powersgd with the methods of that name, dgc with methods that "
        "send values; byteps: none, residual or nesterov, and servers keep what they did not send",
        0, 0, "none residual efsignsgd dgc powersgd nesterov"}
        .unless("compression.method", "none"),
    Key{"compression.min_bytes", KeyType::integer, "65536",
        "BYTEPS_MIN_COMPRESS_BYTES: smaller tensors travel as they are", 0, kMaxSize}
        .of("byteps")
        .unless("compression.method", "none"),
    Key{"training.task", KeyType::choice, "none",
        "what the ranks of a verified run learn: nothing; or a logistic regression with a weight "
        "for each gradient of the job, on data drawn from run.seed: the result has its loss after "
        "every iteration; ddp, horovod, wfbp, mgwfbp",
        0, 0, "none logistic"},
    Key{"training.samples", KeyType::integer, "32", "of each rank", 1, 1000000}.where(
        "training.task", "logistic"),
    Key{"training.rate", KeyType::number, "0.3", "by which the mean gradient moves the weights", 0,
        1000}
        .where("training.task", "logistic"),
    Key{"training.vote", KeyType::number, "0.02",
        "by which the sign moves them that most ranks voted for", 0, 1000}
        .where("training.task", "logistic")
        .where("compression.method", "signsgd signum"),
    Key{"compression.merge", KeyType::choice, "bucket",
        "what is one tensor to a method: a bucket of ddp's, a fused buffer of horovod's, "
        "a call of wfbp's or mgwfbp's; every parameter tensor (ddp, horovod); all gradients (ddp); "
        "powersgd: every matrix of a bucket, in common calls, as PyTorch's powerSGD_hook (ddp)",
        0, 0, "bucket tensor model matrices"}
        .unless("compression.method", "none"),
    Key{"hosts", KeyType::any, "[]",
        "the real machines of ofi, one process each, in rank order; empty: as launched; elsewhere "
        "only "
        "the cores of a single one count"},
    Key{"placement", KeyType::any, "blocked",
        "which process plays which emulated node; a file or list has lines of NODES HOST", 0, 0,
        "blocked cyclic PATH"}
        .on("ofi"),
    Key{"scale.mode", KeyType::choice, "dilate",
        "how a large cluster fits few hosts: time is stretched", 0, 0, "dilate", "slice"},
    Key{"scale.dilation", KeyType::auto_number, "auto",
        "how much slower than real time; auto: the least that this machine keeps up with, as "
        "measured before the run and in its warm-ups",
        1, 1e9}
        .on("memory ofi packets"),
    Key{"scale.nodes", KeyType::string, kAbsent, "slice: nodes that are played", 0, 0, "", "",
        kLater},

    Key{"fabric.kind", KeyType::choice, "memory",
        "what carries messages: memory inside one process, libfabric, UDP packets (kept in order "
        "and sent again if lost, between the namespaces of one process), or a modelled network in "
        "virtual time",
        0, 0, "memory ofi packets virtual"},
    Key{"fabric.network", KeyType::choice, "loggp",
        "how the modelled network is shared: loggp: message by message, first come, first served; "
        "flow: calls between nodes are flows with max-min fair rates; packet: packet by packet, "
        "for small fabrics (fabric.queues)",
        0, 0, "loggp flow packet"}
        .on("virtual"),
    Key{"fabric.queues.buffer", KeyType::size, "2MiB",
        "bytes that a switch has for each of its ports", 1, kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.pause", KeyType::boolean, "true",
        "priority flow control: a switch stops the port that fills its buffer; false: packets that "
        "find it full are lost"}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.scheduling", KeyType::choice, "fifo",
        "which packet a port of a switch sends next: the first that came, or one of each "
        "connection in turn (by bytes)",
        0, 0, "fifo fair"}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.congestion_control", KeyType::choice, "dcqcn",
        "what slows a sender down: marked packets (ECN), or nothing but pauses and its window", 0,
        0, "dcqcn none"}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.window", KeyType::size, "0",
        "bytes of a connection that may be under way, at least one packet; 0: unlimited", 0,
        kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.mark_from", KeyType::size, "0",
        "a queue marks packets from so many bytes on; used with mark_to", 0, kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet")
        .where("fabric.queues.congestion_control", "dcqcn"),
    Key{"fabric.queues.mark_to", KeyType::size, "0",
        "and all of them from so many on; 0: marks from 50 KB to 2 MB at 400 Gb/s, in proportion "
        "to the port's rate",
        0, kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet")
        .where("fabric.queues.congestion_control", "dcqcn"),
    Key{"fabric.queues.mark_share", KeyType::number, "0.01",
        "share of packets that is marked just below mark_to", 0, 1}
        .on("virtual")
        .where("fabric.network", "packet")
        .where("fabric.queues.congestion_control", "dcqcn"),
    Key{"fabric.queues.retransmit_us", KeyType::number, "1000",
        "a sender begins again after once to twice so long without an acknowledgement, and gives "
        "up after seven times in a row",
        1, kMaxMicros}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.provider", KeyType::string, "auto", "libfabric provider"}.on("ofi"),
    Key{"fabric.bind", KeyType::string, "", "local address or interface; empty: chosen"}.on(
        "ofi packets"),
    Key{"fabric.flows", KeyType::choice, "process",
        "what has its own connection, and so its own 5-tuple, on the wire: a pair of "
        "processes, of "
        "NICs, or a library's connection (communicator, channel, source, target)",
        0, 0, "process nic connection"}
        .on("ofi packets"),
    Key{"fabric.colocated", KeyType::choice, "memory",
        "emulated nodes that share a process: messages move in memory, are only timed, or leave "
        "through the network (ofi)",
        0, 0, "memory model wire"},
    Key{"fabric.frames", KeyType::string, "auto",
        "small messages of a flow leave together, in frames of up to so many bytes; auto: 64KiB "
        "for "
        "flows: process, else off; off: every message by itself"}
        .on("ofi"),
    Key{"fabric.namespaces", KeyType::string, "",
        "network namespace of each emulated node, as in gr{node} (a name in "
        "/run/netns, or a path); empty: that of the process"}
        .on("ofi packets")
        .where("fabric.colocated", "wire"),
    Key{"fabric.inside_node", KeyType::choice, "model",
        "a call of a group wholly inside a node: one modelled delay, or message by message (verify "
        "always plays messages)",
        0, 0, "model messages"},
    Key{"fabric.payload", KeyType::choice, "untouched",
        "messages inside a process: hand over the descriptor, or copy every byte", 0, 0,
        "untouched copied"}
        .on("memory ofi packets"),
    Key{"fabric.framing", KeyType::choice, "none",
        "what a modelled link carries besides a message's bytes: none, or the headers, checksums "
        "and gaps of its packets",
        0, 0, "none ethernet tcp udp rocev2"},
    Key{"fabric.packets.loss", KeyType::number, "0",
        "share of schemes' packets between nodes that are lost on purpose, drawn from run.seed", 0,
        0.99}
        .with_schemes(),
    Key{"fabric.packets.duplicates", KeyType::number, "0", "share that comes twice", 0, 0.99}
        .with_schemes(),
    Key{"fabric.packets.reordering", KeyType::number, "0",
        "share that comes late, behind packets sent after it; on ofi they are sent late", 0, 0.99}
        .with_schemes(),
    Key{"fabric.packets.mtu", KeyType::integer, "9000",
        "bytes of the largest IP packet: of schemes' packets, of fabric.framing, and of "
        "fabric.network: packet",
        576, 65535},
    Key{"fabric.qps_per_connection", KeyType::integer, "1", "RDMA queue pairs", 0, 0, "", "",
        kLater},
    Key{"fabric.wire_op", KeyType::string, kAbsent, "RDMA operation", 0, 0, "", "", kLater},
    Key{"fabric.dscp", KeyType::integer, kAbsent, "RDMA traffic class", 0, 0, "", "", kLater},
    Key{"fabric.pfc_priority", KeyType::integer, kAbsent, "RDMA priority", 0, 0, "", "", kLater},
    Key{"fabric.gid_index", KeyType::integer, kAbsent, "RDMA address", 0, 0, "", "", kLater},
    Key{"fabric.path_mtu", KeyType::integer, kAbsent, "RDMA path MTU", 0, 0, "", "", kLater},

    Key{"run.iterations", KeyType::integer, "5", "training steps that are measured", 1, 1e6},
    Key{"run.warmup", KeyType::integer, "1", "training steps before the measured ones", 0, 1e6},
    Key{"run.min_seconds", KeyType::number, "0",
        "wall seconds that the measured steps last at least, as far as the warm-up tells: where "
        "run.iterations are over sooner, more are played, up to 100,000",
        0, 1e6}
        .on("memory ofi packets"),
    Key{"run.verify", KeyType::boolean, "false", "give ranks real data and check every sum"},
    Key{"run.seed", KeyType::integer, "1", "seed of all random draws", 0, kMaxSeed},
    Key{"run.jitter", KeyType::number, "0",
        "relative standard deviation of compute delays: each is multiplied by a lognormal draw of "
        "mean 1 and this deviation, from run.seed, the same on every fabric",
        0, 1},
    Key{"run.compute_slowdown", KeyType::number, "0",
        "by how much a compute is longer if it begins while a collective, a send or a receive of "
        "its rank is in flight and uses the GPU, too: 0.1 is a tenth",
        0, 10},
    Key{"run.stall_timeout_s", KeyType::number, "60", "end the run when nothing moves for so long",
        0.001, 1e6}
        .on("memory ofi packets"),
    Key{"run.shards", KeyType::auto_integer, "auto",
        "engine threads of a process; auto: memory: one for every core, at most four; else one", 1,
        256},
    Key{"run.probe_ms", KeyType::integer, "200",
        "how long to load the fabric before the start to see what it carries; 0: not at all, and "
        "then several hosts need scale.dilation",
        0, 60000}
        .on("ofi packets"),
    Key{"run.duration", KeyType::string, kAbsent, "run for so long", 0, 0, "", "", kLater},
    Key{"run.until", KeyType::any, kAbsent, "run until the mean is known well enough", 0, 0, "", "",
        kLater},

    Key{"events", KeyType::any, "[]", "marks and faults in time", 0, 0, "", "", kLater},
    Key{"background", KeyType::any, "[]",
        "traffic beside the training's: checkpoints and data, between the GPUs and storage nodes"},
    Key{"variants", KeyType::any, "{}",
        "what `ghostrank compare` plays of the job if no flag names variants: {NAME: 'key=value "
        "...'}; other verbs take the job as it is"},
    Key{"safety.max_rate_per_nic", KeyType::string, "none",
        "upper bound of the rate at which a NIC sends", 0, 0, "", "", kLater}};

}  // namespace

std::span<const Key> job_keys() { return kKeys; }

}  // namespace ghostrank
