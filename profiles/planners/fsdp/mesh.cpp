#include "profiles/planners/fsdp/mesh.h"

#include <algorithm>
#include <numeric>

#include "profiles/error.h"
#include "profiles/planners/pipeline/layer_split.h"
#include "profiles/planners/shared/nearest_legal.h"
#include "profiles/planners/shared/rank_grid.h"

namespace ghostrank {
namespace {

// Checks that the model is one that TorchTitan's parallelisms beyond FSDP support here.
void check_model(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  const auto& shape = spec.model->transformer;
  if (p.tp == 1 && p.pp == 1 && p.ep == 1 && p.cp == 1) return;
  const std::string key = p.tp > 1   ? "parallel.tp"
                          : p.pp > 1 ? "parallel.pp"
                          : p.ep > 1 ? "parallel.ep"
                                     : "parallel.cp";
  const auto refuse = [&](const std::string& what) {
    throw Error(spec.source_of(key) + ": " + key + " with framework torchtitan is available for " +
                what + "; use " + key + "=1, or framework: megatron");
  };
  if (!shape || spec.model->architecture != "llama") refuse("models of architecture llama only");
  if (shape->mtp > 0) refuse("models without multi-token prediction only");
  if (p.pp > 1 && shape->tied)
    throw Error(spec.source_of("parallel.pp") +
                ": torchtitan has no pipelines of models whose head shares the embedding's table; "
                "use a model with tied_embeddings: false, or parallel.pp=1");
  if (p.tp > 1 && (shape->is_latent() || shape->bias))
    refuse("models without latent attention and biases only");
}

void check_tensor_parallel(const JobSpec& spec) {
  const int tp = spec.parallel.tp, gpus = spec.cluster.gpus();
  if (tp == 1) return;
  const auto& shape = spec.model->transformer;
  const auto legal = [&](int value) {
    const std::uint64_t n = value;
    return gpus % value == 0 && shape->heads % n == 0 && shape->kv_heads % n == 0 &&
           shape->ffn % n == 0 && shape->experts.ffn % n == 0 && shape->sequence % n == 0 &&
           shape->vocabulary % n == 0;
  };
  if (!legal(tp))
    throw Error(spec.source_of("parallel.tp") + ": parallel.tp is " + std::to_string(tp) +
                " but must divide the " + std::to_string(gpus) +
                " GPUs and the model's heads, kv_heads, ffn, sequence and vocabulary; use "
                "parallel.tp=" +
                nearest_legal(tp, static_cast<int>(shape->kv_heads), legal));
}

// Head-and-tail balancing gives every rank two pieces of the sequence.
void check_context_parallel(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  if (p.cp == 1) return;
  if (p.cp_comm != ContextComm::all_gather && p.cp_comm != ContextComm::p2p)
    throw Error(spec.source_of("parallel.cp_comm") +
                ": torchtitan gathers keys and values or passes them round; use "
                "parallel.cp_comm=all_gather or p2p");
  const auto sequence = static_cast<int>(spec.model->transformer->sequence);
  const int gpus = spec.cluster.gpus();
  const auto legal = [&](int value) {
    const std::int64_t ranks = std::int64_t{value} * p.tp;
    return sequence % (2 * ranks) == 0 && gpus % (ranks * p.pp) == 0;
  };
  if (legal(p.cp)) return;
  const std::string nearest = nearest_legal(p.cp, gpus, legal);
  throw Error(
      spec.source_of("parallel.cp") + ": parallel.cp is " + std::to_string(p.cp) +
      " but 2 x cp x tp must divide the model's sequence of " + std::to_string(sequence) +
      " tokens, and cp x tp x pp the " + std::to_string(gpus) + " GPUs; use " +
      (nearest.empty() ? "a smaller parallel.tp or parallel.pp" : "parallel.cp=" + nearest));
}

// With the other schedules the backward has two passes, into which no second forward is placed yet.
void check_recompute(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  if (p.recompute == Recompute::none) return;
  if (!spec.model->transformer)
    throw Error(spec.source_of("parallel.recompute") +
                ": the blocks of a transformer are computed again, and " + spec.model->name +
                " is none; use parallel.recompute=none");
  if (p.pp == 1 || p.schedule == "1f1b" || p.schedule == "interleaved") return;
  throw Error(spec.source_of("parallel.recompute") + ": recompute with torchtitan and schedule " +
              p.schedule + " is not available yet; use parallel.schedule=1f1b or interleaved, or " +
              "parallel.recompute=none");
}

// `ranks` hold one replica of one stage.
void check_experts(const JobSpec& spec, int ranks) {
  const int ep = spec.parallel.ep;
  if (ep == 1) return;
  const Transformer& model = *spec.model->transformer;
  if (model.experts.count == 0)
    throw Error(spec.source_of("parallel.ep") +
                ": the model has no experts to spread; leave it out, or use a model with experts");
  const std::uint64_t rows = spec.parallel.micro_batch * model.sequence /
                             static_cast<std::uint64_t>(spec.parallel.tp * spec.parallel.cp) *
                             model.experts.top_k;
  const auto legal = [&](int value) {
    const std::uint64_t n = value;
    return ranks % value == 0 && model.experts.count % n == 0 && rows % n == 0;
  };
  if (!legal(ep))
    throw Error(spec.source_of("parallel.ep") + ": parallel.ep is " + std::to_string(ep) +
                " but must divide the " + std::to_string(ranks) + " ranks of a replica's stage, " +
                std::to_string(model.experts.count) + " experts and " + std::to_string(rows) +
                " rows that a rank routes; use parallel.ep=" +
                nearest_legal(ep, static_cast<int>(model.experts.count), legal));
}

void check_data_ranks(const JobSpec& spec, int ranks) {
  const ParallelPlan& p = spec.parallel;
  if (p.dp != 0 && p.dp != ranks) {
    std::string legal = std::to_string(ranks);
    const std::int64_t gpus = std::int64_t{p.dp} * p.tp * p.pp * p.cp,
                       per_node = spec.cluster.gpus_per_node;
    if (gpus % per_node == 0) legal += ", or cluster.nodes=" + std::to_string(gpus / per_node);
    throw Error(spec.source_of("parallel.dp") + ": parallel.dp is " + std::to_string(p.dp) +
                " but the cluster has " + std::to_string(spec.cluster.gpus()) + " GPUs" +
                (p.tp > 1 ? " with tp " + std::to_string(p.tp) : "") +
                (p.pp > 1 ? " with pp " + std::to_string(p.pp) : "") +
                (p.cp > 1 ? " with cp " + std::to_string(p.cp) : "") +
                "; use parallel.dp=" + legal);
  }
  const int replicas = p.dp_replicate;
  const int most = p.cp > 1 ? ranks : ranks - 1;  // at least two ranks must share the parameters
  const auto fits = [&](int value) { return value == 1 || (ranks % value == 0 && value <= most); };
  if (!fits(replicas))
    throw Error(spec.source_of("parallel.dp_replicate") + ": parallel.dp_replicate is " +
                std::to_string(replicas) + " but must divide the " + std::to_string(ranks) +
                " data-parallel ranks into groups of two or more; use parallel.dp_replicate=" +
                nearest_legal(replicas, ranks, fits));
}

// Ranks that tp, pp and cp leave for data parallelism.
int data_ranks(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  const int gpus = spec.cluster.gpus();
  const std::int64_t model_ranks = std::int64_t{p.tp} * p.pp * p.cp;
  if (gpus % model_ranks == 0) return static_cast<int>(gpus / model_ranks);
  const std::int64_t per_node = spec.cluster.gpus_per_node, unit = std::lcm(model_ranks, per_node);
  throw Error(spec.source_of("cluster.nodes") + ": " + std::to_string(gpus) +
              " GPUs are no multiple of tp " + std::to_string(p.tp) + " x pp " +
              std::to_string(p.pp) + (p.cp > 1 ? " x cp " + std::to_string(p.cp) : "") +
              "; use cluster.nodes=" + std::to_string((gpus + unit - 1) / unit * unit / per_node) +
              " or smaller dimensions");
}

// Checks the rules of torch.distributed.pipelining's schedules for the number of micro-batches.
// `unit`: samples of one micro-batch on all data-parallel ranks.
void check_micro_batches(const JobSpec& spec, const Pipeline& pipeline, std::int64_t unit) {
  const int count = pipeline.micro_batches, stages = pipeline.stages;
  const auto refuse = [&](const std::string& what, int fit) {
    throw Error(spec.source_of("parallel.global_batch") + ": schedule " + pipeline.schedule +
                " takes " + what + ", here " + std::to_string(count) + " with pp " +
                std::to_string(stages) +
                "; use parallel.global_batch=" + std::to_string(fit * unit));
  };
  if (pipeline.schedule == "1f1b" && count < stages) refuse("pp micro-batches or more", stages);
  if (pipeline.schedule == "dualpipev" && count < 2 * stages)
    refuse("2 pp micro-batches or more", 2 * stages);
  const int rounds = std::max(1, count / stages);
  if (pipeline.schedule == "interleaved" && count % rounds != 0)
    refuse("micro-batches in so many equal rounds as pp fits into them",
           (count + stages - 1) / stages * stages);
}

Pipeline pipeline_for(const JobSpec& spec, int ranks) {
  const ParallelPlan& p = spec.parallel;
  const std::int64_t unit = std::int64_t{p.micro_batch} * ranks;
  Pipeline out;
  out.schedule = p.schedule;
  out.stages = p.pp;
  out.micro_batches = static_cast<int>(std::max<std::int64_t>(1, p.global_batch / unit));
  if (p.global_batch % unit != 0)
    throw Error(
        spec.source_of("parallel.global_batch") + ": parallel.global_batch is " +
        std::to_string(p.global_batch) + " but micro_batch " + std::to_string(p.micro_batch) +
        " x dp " + std::to_string(ranks) + " does not divide it; use parallel.global_batch=" +
        (p.global_batch > unit ? std::to_string(p.global_batch / unit * unit) + " or " : "") +
        std::to_string((p.global_batch / unit + 1) * unit));
  if (p.schedule == "zb-h1" || p.schedule == "dualpipe")
    throw Error(spec.source_of("parallel.schedule") + ": schedule " + p.schedule +
                " is none that torchtitan has here; use 1f1b, interleaved, zbv or dualpipev");
  if (p.pp == 1) {
    if (p.schedule != "1f1b")
      throw Error(spec.source_of("parallel.schedule") + ": schedule " + p.schedule +
                  " needs pipeline stages; use parallel.pp=2 or more, or parallel.schedule=1f1b");
    return out;
  }
  out.chunks = pipeline_chunks(p.schedule, p.interleave > 1 ? p.interleave : 2);
  out.round = out.micro_batches / std::max(1, out.micro_batches / out.stages);
  check_micro_batches(spec, out, unit);
  const std::vector<Part> parts = split_as_torchtitan(spec, *spec.model->transformer, out);
  out.alike = std::all_of(parts.begin(), parts.end(),
                          [&](const Part& part) { return part.layers == parts.front().layers; });
  return out;
}

std::uint16_t add(Workload& workload, const char* name,
                  std::vector<std::vector<WorldRank>> groups) {
  const auto kind = static_cast<std::uint16_t>(workload.group_names.size());
  workload.group_names.emplace_back(name);
  for (std::vector<WorldRank>& members : groups)
    workload.groups.push_back({kind, std::move(members)});
  return kind;
}

// Groups in the mesh of the routed experts.
void add_expert_groups(Workload& workload, FsdpMesh& mesh) {
  if (mesh.ep == 1) return;
  const RankGrid grid({{"ep", mesh.ep},
                       {"shard", mesh.experts_shard},
                       {"replicate", mesh.replicate},
                       {"pp", mesh.pipeline.stages}});
  mesh.expert_group = add(workload, "ep", grid.groups({"ep"}));
  if (mesh.experts_shard > 1)
    mesh.experts_shard_group = add(workload, "efsdp", grid.groups({"shard"}));
}

}  // namespace

Pipeline fsdp_pipeline(const JobSpec& spec) { return pipeline_for(spec, data_ranks(spec)); }

std::vector<std::vector<std::size_t>> fsdp_chunks(const JobSpec& spec, const Pipeline& pipeline,
                                                  int stage) {
  const std::size_t count = spec.model->layers.size();
  if (pipeline.stages == 1) {
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return {all};
  }
  const std::vector<Part> parts = split_as_torchtitan(spec, *spec.model->transformer, pipeline);
  std::vector<std::vector<std::size_t>> out;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const Part& part = parts[pipeline.part(stage, chunk)];
    std::vector<std::size_t> layers;
    if (part.embedding) layers.push_back(0);
    for (int i = 0; i < part.layers; ++i)
      layers.push_back(static_cast<std::size_t>(part.first_layer + i + 1));
    if (part.head) layers.push_back(count - 1);
    out.push_back(std::move(layers));
  }
  return out;
}

FsdpMesh fsdp_mesh(const JobSpec& spec, Workload& workload) {
  check_model(spec);
  check_tensor_parallel(spec);
  check_context_parallel(spec);
  check_recompute(spec);
  const int ranks = data_ranks(spec);
  check_data_ranks(spec, ranks);
  FsdpMesh mesh;
  mesh.tp = spec.parallel.tp;
  mesh.ep = spec.parallel.ep;
  mesh.replicate = spec.parallel.dp_replicate;
  mesh.cp = spec.parallel.cp;
  mesh.shard = ranks / mesh.replicate * mesh.cp;
  check_experts(spec, mesh.shard * mesh.tp);
  mesh.experts_shard = mesh.ep > 1 ? mesh.shard * mesh.tp / mesh.ep : mesh.shard;
  mesh.pipeline = pipeline_for(spec, ranks);
  const RankGrid grid({{"tp", mesh.tp},
                       {"cp", mesh.cp},
                       {"shard", mesh.shard / mesh.cp},
                       {"replicate", mesh.replicate},
                       {"pp", mesh.pipeline.stages}});
  workload.ranks = grid.ranks();
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    workload.role_of.push_back(static_cast<std::uint16_t>(grid.coordinate(rank, "pp")));
  if (mesh.shard * mesh.replicate > 1)
    mesh.data_group = add(workload, "dp", grid.groups({"cp", "shard", "replicate"}));
  mesh.shard_group = mesh.data_group;
  if (mesh.replicate > 1) {
    mesh.shard_group = add(workload, "dp_shard", grid.groups({"cp", "shard"}));
    mesh.replica_group = add(workload, "dp_replicate", grid.groups({"replicate"}));
  }
  if (mesh.tp > 1) mesh.tensor_group = add(workload, "tp", grid.groups({"tp"}));
  if (mesh.cp > 1) mesh.context_group = add(workload, "cp", grid.groups({"cp"}));
  if (mesh.pipeline.stages > 1) {
    mesh.forward_group = add(workload, "pp.forward", grid.groups({"pp"}));
    mesh.backward_group = add(workload, "pp.backward", grid.groups({"pp"}));
  }
  add_expert_groups(workload, mesh);
  workload.samples_per_iteration =
      static_cast<double>(spec.parallel.micro_batch) * ranks * mesh.pipeline.micro_batches;
  workload.flops_per_iteration = 3 * spec.model->forward_flops() * workload.samples_per_iteration;
  return mesh;
}

std::uint64_t shard_elements(const JobSpec& spec, const ParameterTensor& tensor,
                             std::uint64_t shards) {
  const std::uint64_t tp = spec.parallel.tp;
  std::uint64_t rows = tensor.first_dimension(), columns = tensor.numel / rows;
  if (!is_replicated(spec, tensor)) {
    const bool by_columns =
        tensor.name == "o.w" || tensor.name == "mlp.down.w" || tensor.name.ends_with(".w2");
    std::uint64_t& cut = by_columns ? columns : rows;
    cut = (cut + tp - 1) / tp;
  }
  return (rows + shards - 1) / shards * columns;
}

bool is_replicated(const JobSpec& spec, const ParameterTensor& tensor) {
  const bool of_heads = tensor.name == "q.b" || tensor.name == "k.b" || tensor.name == "v.b";
  return spec.parallel.tp == 1 || tensor.name == "router" ||
         (tensor.numel <= spec.model->transformer->hidden && !of_heads);
}

}  // namespace ghostrank
