// Checks that a Megatron plan fits its model, its cluster and its device; errors name the nearest
// values that fit.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/megatron/memory.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/shared/nearest_legal.h"

namespace ghostrank {
namespace {

// Says "FILE:LINE:COL: KEY is VALUE but WHY; use KEY=4 or 8", or where no value fits what else to
// use.
[[noreturn]] void refuse(const JobSpec& spec, const std::string& key, int value,
                         const std::string& why, int most, const std::function<bool(int)>& legal,
                         const std::string& otherwise = "") {
  const std::string nearest = nearest_legal(value, most, legal);
  throw Error(spec.source_of(key) + ": " + key + " is " + std::to_string(value) + " but " + why +
              "; use " + (nearest.empty() ? otherwise : key + "=" + nearest));
}

bool divides(std::uint64_t divisor, std::uint64_t number) { return number % divisor == 0; }

void check_tensor_parallel(const JobSpec& spec, const Transformer& m) {
  const int tp = spec.parallel.tp;
  const auto tokens = m.sequence / spec.parallel.cp;
  const std::uint64_t shared = m.experts.shared * m.experts.ffn;
  const auto legal = [&](int value) {
    const std::uint64_t n = value;
    return divides(n, m.heads) && divides(n, m.kv_heads) && divides(n, m.ffn) &&
           divides(n, shared) && (!spec.parallel.sequence_parallel || divides(n, tokens));
  };
  if (legal(tp)) return;
  const std::uint64_t n = tp;
  const std::string what = !divides(n, m.heads)      ? std::to_string(m.heads) + " heads"
                           : !divides(n, m.kv_heads) ? std::to_string(m.kv_heads) + " kv_heads"
                           : !divides(n, m.ffn)      ? "the ffn of " + std::to_string(m.ffn)
                           : !divides(n, shared)
                               ? "the shared experts' ffn of " + std::to_string(shared)
                               : std::to_string(tokens) + " tokens";
  refuse(spec, "parallel.tp", tp, "does not divide " + what, static_cast<int>(m.heads), legal);
}

void check_context_parallel(const JobSpec& spec, const Transformer& m) {
  const int cp = spec.parallel.cp, inner = spec.parallel.cp_a2a;
  const bool hierarchical = spec.parallel.cp_comm == ContextComm::hierarchical;
  const bool by_heads = spec.parallel.cp_comm == ContextComm::a2a;
  const std::uint64_t heads = m.kv_heads / spec.parallel.tp;
  // The sequence is cut in 2 cp pieces, so that causal attention is balanced.
  const auto legal = [&](int value) {
    const std::uint64_t n = value;
    return n == 1 || (divides(2 * n, m.sequence) && (!by_heads || divides(n, heads)));
  };
  const std::string what =
      "does not divide the " + std::to_string(heads) + " kv_heads of a tp rank";
  if (!legal(cp)) {
    const bool cut = divides(2 * static_cast<std::uint64_t>(cp), m.sequence);
    refuse(spec, "parallel.cp", cp,
           cut ? what : "2 cp does not divide the sequence of " + std::to_string(m.sequence),
           static_cast<int>(m.sequence), legal);
  }
  if (hierarchical && cp < 4)
    throw Error(spec.source_of("parallel.cp_comm") +
                ": parallel.cp_comm: a2a+p2p has two levels; use parallel.cp=4 or more");
  if (!hierarchical && inner != 1)
    throw Error(spec.source_of("parallel.cp_a2a") +
                ": parallel.cp_a2a needs parallel.cp_comm: a2a+p2p");
  const auto level = [&](int value) {
    return value > 1 && value < cp && cp % value == 0 && divides(value, heads);
  };
  if (hierarchical && !level(inner))
    refuse(spec, "parallel.cp_a2a", inner,
           cp % inner == 0 && inner > 1 && inner < cp
               ? what
               : "must divide cp " + std::to_string(cp) + " in groups of two or more",
           cp, level, "parallel.cp_comm=p2p");
}

void check_gather(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  if (p.distributed_optimizer && p.overlap_param_gather && !p.overlap_grad_reduce)
    throw Error(spec.source_of("parallel.overlap_param_gather") +
                ": parallel.overlap_param_gather needs parallel.overlap_grad_reduce: true; use " +
                "that, or parallel.overlap_param_gather=false");
}

void check_scatter(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  if (p.scatter_pipeline && p.sequence_parallel)
    throw Error(spec.source_of("parallel.scatter_gather_tensors_in_pipeline") +
                ": parallel.scatter_gather_tensors_in_pipeline has no effect with sequence "
                "parallelism, whose ranks send a part each anyway; leave it out");
}

// Transformer Engine's buffers are those of hidden states on one node's GPUs, for layers that it
// computes itself.
void check_tp_overlap(const JobSpec& spec, const Transformer& m) {
  const ParallelPlan& p = spec.parallel;
  if (!p.tp_comm_overlap || p.tp == 1) return;
  const auto needs = [&](const std::string& what) {
    throw Error(spec.source_of("parallel.tp_comm_overlap") + ": parallel.tp_comm_overlap " + what);
  };
  if (!p.sequence_parallel)
    needs("cuts gathers and reduce-scatters of the sequence; use parallel.sequence_parallel=true");
  if (m.is_latent() || m.experts.count > 0 || m.mtp > 0)
    needs(
        "is played for dense layers with attention of heads alone; leave it out for latent "
        "attention, experts and multi-token prediction");
  if (p.tp > spec.cluster.gpus_per_node)
    needs("copies between GPUs of a node, which has " + std::to_string(spec.cluster.gpus_per_node) +
          ", and parallel.tp is " + std::to_string(p.tp) + "; use a smaller tp, or leave it out");
}

// Checks a schedule's rules for stages and chunks; split_as_megatron() spreads the layers.
void check_schedule(const JobSpec& spec, const Transformer& m) {
  const ParallelPlan& p = spec.parallel;
  if (p.schedule != "1f1b" && p.pp == 1)
    throw Error(spec.source_of("parallel.schedule") + ": schedule " + p.schedule +
                " needs pipeline stages; use parallel.pp=2 or more, or parallel.schedule=1f1b");
  const auto units = static_cast<int>(m.layers) + p.embedding_in_split + p.loss_in_split;
  if (p.schedule == "dualpipe" && p.pp % 2 != 0)
    refuse(
        spec, "parallel.pp", p.pp, "schedule dualpipe needs stages in pairs", units,
        [&](int value) { return value % 2 == 0 && units % value == 0; },
        "another parallel.schedule, or an even parallel.pp with "
        "parallel.pipeline_model_parallel_layout");
  if (p.schedule != "interleaved") {
    if (p.interleave != 1)
      throw Error(spec.source_of("parallel.interleave") +
                  ": parallel.interleave needs parallel.schedule: interleaved");
    return;
  }
  const bool uneven = p.first_layers > 0 || p.last_layers > 0 || units % p.pp != 0;
  if (!p.pipeline_layout.empty() || (uneven && p.interleave > 1)) return;
  const int per_stage = units / p.pp;
  if (p.interleave < 2 || per_stage % p.interleave != 0)
    refuse(
        spec, "parallel.interleave", p.interleave,
        "a stage has " + std::to_string(per_stage) + " layers to cut in two chunks or more",
        per_stage, [&](int value) { return value > 1 && per_stage % value == 0; },
        "parallel.schedule=1f1b, or a smaller parallel.pp");
}

// A layout determines the number of chunks per stage.
Pipeline pipeline_for(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  Pipeline out;
  out.schedule = p.schedule;
  out.stages = p.pp;
  const int parts = parts_of_layout(spec);
  const bool told = p.schedule == "interleaved" && p.interleave == 1 && parts % p.pp == 0;
  out.chunks = pipeline_chunks(p.schedule, told ? parts / p.pp : p.interleave);
  return out;
}

// What a tensor-parallel rank has must suit Transformer Engine's assert_dim_for_fp8_exec() and, as
// leading dimensions of cuBLASLt's fp8 products forward and backward, be multiples of 16: widths,
// and the rows of products. Rows before a gather are only cast.
void check_fp8(const MegatronPlan& plan) {
  if (!plan.fp8()) return;
  constexpr double kAda = 8.9;  // the first with fp8
  if (plan.spec->device.compute_capability < kAda)
    throw Error(plan.spec->source_of("precision.parameters") +
                ": fp8 needs a GPU of compute capability 8.9 or more, and the device's "
                "compute_capability is " +
                number_text(plan.spec->device.compute_capability) +
                "; use precision.parameters=bf16");
  const Transformer& m = plan.model;
  const std::uint64_t tp = plan.tp, rows = plan.sequence_parallel ? plan.tokens / tp : plan.tokens;
  const auto check = [&](const std::string& what, std::uint64_t size, std::uint64_t of) {
    if (size % of != 0)
      throw Error(plan.spec->source_of("precision.parameters") + ": products in fp8 need " + what +
                  " in multiples of " + std::to_string(of) + ", and a rank has " +
                  std::to_string(size) +
                  "; use precision.parameters=bf16, another parallel.tp or other sizes");
  };
  constexpr std::uint64_t kRows = 8, kWidth = 16;
  check("tokens of a micro-batch", plan.tokens, kWidth);
  check("tokens of a micro-batch", rows, kRows);
  check("a hidden size", m.hidden, kWidth);
  if (m.is_latent()) {
    const LatentAttention& l = m.latent;
    check("queries", m.heads * (l.nope + l.rope) / tp, kWidth);
    check("latents of queries", l.q_lora, kWidth);
    check("latents of keys and values", l.kv_lora, kWidth);
    check("latents with positions", l.kv_lora + l.rope, kWidth);
    check("keys and values", m.heads * (l.nope + l.value) / tp, kWidth);
    check("an attention width", m.heads * l.value / tp, kWidth);
  } else {
    check("an attention width", m.query_width() / tp, kWidth);
    check("queries, keys and values", (m.query_width() + 2 * m.key_width()) / tp, kWidth);
  }
  check("an ffn", m.ffn / tp, kWidth);
  if (m.experts.count == 0) return;
  check("an ffn of experts", m.experts.ffn / plan.etp, kWidth);
  check("an ffn of shared experts", m.experts.shared * m.experts.ffn / tp, kWidth);
}

void check_world(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  const int gpus = spec.cluster.gpus();
  const std::int64_t model_ranks = std::int64_t{p.tp} * p.cp * p.pp;
  const std::string what = "tp " + std::to_string(p.tp) + " x cp " + std::to_string(p.cp) +
                           " x pp " + std::to_string(p.pp);
  if (gpus % model_ranks != 0) {
    const std::int64_t per_node = spec.cluster.gpus_per_node;
    const std::int64_t unit = std::lcm(model_ranks, per_node);
    const std::int64_t fitting = (gpus + unit - 1) / unit * unit;
    throw Error(spec.source_of("cluster.nodes") + ": " + std::to_string(gpus) +
                " GPUs are no multiple of " + what + "; use cluster.nodes=" +
                std::to_string(fitting / per_node) + " or smaller dimensions");
  }
  const auto dp = static_cast<int>(gpus / model_ranks);
  if (p.dp != 0 && p.dp != dp)
    throw Error(spec.source_of("parallel.dp") + ": parallel.dp is " + std::to_string(p.dp) +
                " but " + std::to_string(gpus) + " GPUs with " + what + " leave " +
                std::to_string(dp) + "; use parallel.dp=" + std::to_string(dp));
}

void check_batch(const JobSpec& spec) {
  const ParallelPlan& p = spec.parallel;
  const int dp = spec.cluster.gpus() / (p.tp * p.cp * p.pp);
  const std::int64_t unit = std::int64_t{p.micro_batch} * dp;
  if (p.global_batch % unit != 0) {
    const std::int64_t below = p.global_batch / unit * unit;
    throw Error(spec.source_of("parallel.global_batch") + ": parallel.global_batch is " +
                std::to_string(p.global_batch) + " but micro_batch " +
                std::to_string(p.micro_batch) + " x dp " + std::to_string(dp) +
                " does not divide it; use parallel.global_batch=" +
                (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit));
  }
  const std::int64_t micro_batches = std::max<std::int64_t>(p.global_batch / unit, 1);
  const std::int64_t even = p.schedule == "dualpipe" ? 2 : 1;
  if (p.schedule.starts_with("dualpipe") &&
      (micro_batches < 2 * p.pp || micro_batches % even != 0)) {
    const std::int64_t fit = std::max<std::int64_t>(2 * p.pp, micro_batches + micro_batches % even);
    throw Error(spec.source_of("parallel.global_batch") + ": schedule " + p.schedule + " takes " +
                (even > 1 ? "an even number of micro-batches, " : "") + "2 pp or more, here " +
                std::to_string(micro_batches) + " with pp " + std::to_string(p.pp) +
                "; use parallel.global_batch=" + std::to_string(fit * unit));
  }
  if (p.schedule == "interleaved" && micro_batches % p.pp != 0) {
    const std::int64_t fit = (micro_batches + p.pp - 1) / p.pp * p.pp * unit;
    throw Error(spec.source_of("parallel.global_batch") +
                ": schedule interleaved takes micro-batches " + "in blocks of pp, here " +
                std::to_string(micro_batches) + " with pp " + std::to_string(p.pp) +
                "; use parallel.global_batch=" + std::to_string(fit));
  }
}

void check_model(const JobSpec& spec) {
  const Model& model = *spec.model;
  if (!model.transformer || model.architecture == "bert")
    throw Error(spec.source_of("model") + ": framework megatron trains decoders, and " +
                model.name +
                " is none; use a model of kind transformer, architecture gpt2 or llama");
  if (spec.precision.parameters == DataType::int32)
    throw Error(spec.source_of("precision.parameters") +
                ": transformers do not train in int32; use bf16 or fp32");
  if (model.transformer->mtp > 0 && model.transformer->tied)
    throw Error(spec.source_of("model") +
                ": multi-token prediction with tied embeddings is not available; use " +
                "tied_embeddings: false, or mtp_layers: 0");
  // As Megatron's own arguments are checked.
  if (model.transformer->mtp > 0 && model.transformer->learned_positions)
    throw Error(spec.source_of("model") +
                ": Megatron has no multi-token prediction with learned positions; use " +
                "position_embeddings: rope, or mtp_layers: 0");
}

int expert_tp(const ParallelPlan& p) { return p.expert_tp > 0 ? p.expert_tp : p.tp; }

void check_experts(const JobSpec& spec, const Transformer& m) {
  const ParallelPlan& p = spec.parallel;
  const auto count = static_cast<int>(m.experts.count);
  if (count == 0) {
    if (p.ep == 1 && p.expert_tp == 0 && !p.deduplicated && p.expert_imbalance == 0 &&
        p.expert_load.empty())
      return;
    throw Error(spec.source_of(p.ep != 1               ? "parallel.ep"
                               : p.expert_tp != 0      ? "parallel.expert_tp"
                               : p.deduplicated        ? "parallel.expert_dispatch"
                               : p.expert_load.empty() ? "parallel.expert_imbalance"
                                                       : "parallel.expert_load") +
                ": the model has no experts to spread; leave it out, or use a model with experts");
  }
  if (count % p.ep != 0)
    refuse(spec, "parallel.ep", p.ep, "does not divide " + std::to_string(count) + " experts",
           count, [&](int value) { return count % value == 0; });
  const int dense = spec.cluster.gpus() / p.pp;
  if (dense % expert_tp(p) != 0)
    refuse(
        spec, "parallel.expert_tp", p.expert_tp,
        "does not divide the " + std::to_string(dense) + " ranks of a stage", dense,
        [&](int value) {
          return dense % (std::int64_t{value} * p.ep) == 0 && m.experts.ffn % value == 0;
        },
        "a parallel.ep that divides them");
  const std::int64_t expert_tp_wide = expert_tp(p);
  if (dense % (p.ep * expert_tp_wide) != 0)
    refuse(spec, "parallel.ep", p.ep,
           "a stage has " + std::to_string(dense) + " ranks, no multiple of ep x expert_tp " +
               std::to_string(expert_tp(p)),
           count,
           [&](int value) { return count % value == 0 && dense % (value * expert_tp_wide) == 0; });
  if (m.experts.ffn % expert_tp(p) != 0)
    refuse(spec, "parallel.expert_tp", expert_tp(p),
           "does not divide the experts' ffn of " + std::to_string(m.experts.ffn), p.tp,
           [&](int value) { return m.experts.ffn % value == 0; });
  if (p.tp > 1 && !p.sequence_parallel)
    throw Error(spec.source_of("parallel.tp") +
                ": experts with tp need sequence parallelism; use " +
                "parallel.sequence_parallel=true");
  if (p.deduplicated && expert_tp(p) != 1)
    throw Error(spec.source_of("parallel.expert_dispatch") +
                ": parallel.expert_dispatch: deduplicated has whole experts on a rank; use " +
                "parallel.expert_tp=1");
  if (p.deduplicated || p.expert_imbalance > 0 || !p.expert_load.empty()) return;
  const std::uint64_t rows = m.sequence / p.cp * p.micro_batch * m.experts.top_k / p.tp;
  if (rows % p.ep != 0)
    refuse(spec, "parallel.ep", p.ep,
           std::to_string(rows) + " rows per rank cannot be routed evenly", count,
           [&](int value) { return count % value == 0 && rows % value == 0; });
}

double worst(const MegatronPlan& plan, bool sharded, Recompute recompute) {
  JobSpec spec = *plan.spec;
  spec.parallel.distributed_optimizer = sharded;
  spec.parallel.recompute = recompute;
  MegatronPlan other = plan;
  other.spec = &spec;
  return megatron_memory(other).total();
}

std::string gigabytes(double bytes) {
  return std::to_string(static_cast<long>(std::ceil(bytes / 1e9))) + " GB";
}

}  // namespace

void check_memory(const MegatronPlan& plan) {
  const JobSpec& spec = *plan.spec;
  const double have = spec.device.memory_bytes;
  const bool sharded = spec.parallel.distributed_optimizer;
  const Recompute recompute = spec.parallel.recompute;
  if (have == 0 || worst(plan, sharded, recompute) <= have) return;
  std::string remedy = "use more tp or pp";
  if (worst(plan, true, recompute) <= have)
    remedy = "use parallel.distributed_optimizer=true";
  else if (worst(plan, sharded, Recompute::full) <= have)
    remedy = "use parallel.recompute=full";
  else if (worst(plan, true, Recompute::full) <= have)
    remedy = "use parallel.distributed_optimizer=true and parallel.recompute=full";
  throw Error(spec.source_of("parallel.pp") + ": a rank needs about " +
              gigabytes(worst(plan, sharded, recompute)) + " and the device " + spec.device.name +
              " has " + gigabytes(have) + "; " + remedy + " (device.memory_bytes=0: no check)");
}

MegatronPlan megatron_plan(const JobSpec& spec) {
  check_model(spec);
  const Transformer& model = *spec.model->transformer;
  check_context_parallel(spec, model);
  check_tensor_parallel(spec, model);
  check_schedule(spec, model);
  check_gather(spec);
  check_scatter(spec);
  check_tp_overlap(spec, model);
  const Pipeline shape = pipeline_for(spec);
  std::vector<Part> parts = split_as_megatron(spec, model, shape);
  check_world(spec);
  check_batch(spec);
  check_experts(spec, model);

  const ParallelPlan& parallel = spec.parallel;
  MegatronPlan plan;
  plan.spec = &spec;
  plan.model = model;
  plan.tp = parallel.tp;
  plan.cp = parallel.cp;
  plan.pp = parallel.pp;
  plan.ep = parallel.ep;
  plan.etp = model.experts.count > 0 ? expert_tp(parallel) : plan.tp;
  plan.dp = spec.cluster.gpus() / (plan.tp * plan.cp * plan.pp);
  plan.micro_batch = parallel.micro_batch;
  plan.sequence_parallel = parallel.sequence_parallel && plan.tp > 1;
  plan.activations = spec.precision.parameters;
  plan.gradients = spec.precision.gradients;
  const auto multiple = static_cast<std::uint64_t>(parallel.vocabulary_multiple) * plan.tp;
  plan.vocabulary = (model.vocabulary + multiple - 1) / multiple * multiple;
  plan.tokens = model.sequence / plan.cp * plan.micro_batch;
  plan.pipeline = shape;
  plan.parts = std::move(parts);
  plan.pipeline.alike = std::all_of(plan.parts.begin(), plan.parts.end(), [&](const Part& part) {
    return part.layers == plan.parts.front().layers && part.mtp == 0;
  });
  plan.pipeline.micro_batches = static_cast<int>(std::max<std::int64_t>(
      1, parallel.global_batch / (std::int64_t{plan.micro_batch} * plan.dp)));
  check_fp8(plan);
  check_memory(plan);
  return plan;
}

}  // namespace ghostrank
