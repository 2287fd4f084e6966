#include "profiles/planners/megatron/passes.h"

#include <algorithm>
#include <array>

namespace ghostrank {
namespace {

// A call launches its kernel, and the waits of its stream and the compute stream for each other.
constexpr int kLaunchesOfCall = 2;

}  // namespace

PassWriter::PassWriter(ProgramBuilder& out, const MegatronPlan& plan, const MegatronGroups& groups,
                       const MegatronStreams& streams, std::span<const ExpertRouting> routing,
                       int ep_rank, const Fp8Maxima& maxima)
    : out_(out),
      plan_(plan),
      groups_(groups),
      streams_(streams),
      times_(megatron_layer_times(plan)),
      head_(megatron_head_times(plan)),
      launch_(megatron_launch(plan)),
      routing_(routing),
      ep_rank_(ep_rank),
      maxima_(maxima),
      gather_label_(out.label("tp all-gather")),
      scatter_label_(out.label("tp reduce-scatter")),
      reduce_label_(out.label("tp all-reduce")),
      loss_label_(out.label("loss all-reduce")),
      kv_label_(out.label("cp keys and values")),
      dkv_label_(out.label("cp gradients of keys and values")),
      heads_label_(out.label("cp heads against sequence")),
      rows_label_(out.label("rows of experts")),
      best_label_(out.label("best logits")),
      launches_label_(out.label("launches")),
      maxima_label_(out.label("fp8 maxima")) {
  const auto of_width = [&](std::uint64_t width) { return plan.tokens * width / plan.tp; };
  const Transformer& model = plan.model;
  if (model.is_latent()) {
    q_elements_ = k_elements_ = of_width(model.heads * (model.latent.nope + model.latent.rope));
    v_elements_ = o_elements_ = of_width(model.heads * model.latent.value);
  } else {
    q_elements_ = o_elements_ = of_width(model.query_width());
    k_elements_ = v_elements_ = of_width(model.key_width());
  }
}

void PassWriter::begin(Pass pass, int micro_batch, bool first) {
  constexpr std::array kLetters{"F", "B", "I", "W"};
  const std::string letter = kLetters[static_cast<std::size_t>(pass)];
  const auto label = [&](const char* what) { return out_.label(letter, micro_batch, what); };
  pass_ = pass;
  casts_ = first && plan_.fp8();
  if (streams_.host > 0) out_.after(streams_.host, streams_.compute);
  labels_.attention = label(" attention");
  labels_.ffn = label(" ffn");
  labels_.head = label(" head");
  if (plan_.model.mtp > 0) labels_.mtp = label(" mtp");
  if (pass != Pass::forward && plan_.spec->parallel.recompute != Recompute::none)
    labels_.again = label(" recompute");
}

PassWriter::Half PassWriter::attention(std::uint32_t label) const {
  return {label, times_.qkv, times_.core, times_.projection, LayerPart::qkv, LayerPart::projection};
}

// The first kernel starts after its launch, and the last one does not end before its own launch.
void PassWriter::compute(std::uint32_t label, const GpuWork& work) {
  const Picoseconds first = std::min(launch_, work.launching);
  const auto launch = [&](Picoseconds time) {
    if (streams_.host == 0) return;
    out_.compute(streams_.host, launches_label_, time);
    out_.after(streams_.compute, streams_.host);
  };
  launch(first);
  out_.compute(streams_.compute, label, work.time);
  launch(work.launching - first);
}

// ---- Tensor parallelism ----

void PassWriter::exposed_tp(Func func, std::uint32_t label, DataType type, std::uint64_t count,
                            Reduction reduction) {
  out_.after(streams_.tp, streams_.compute);
  out_.collective(streams_.tp, label, func, groups_.tp, type, count, 0, 0, reduction);
  out_.after(streams_.compute, streams_.tp);
  hold_host();
}

// A call on a tensor of `elements` in total; it overlaps the next compute.
void PassWriter::launch_tp(Func func, std::uint32_t label, DataType type, std::uint64_t elements) {
  const std::uint64_t count = func == Func::all_reduce ? elements : elements / plan_.tp;
  if (streams_.host > 0) out_.compute(streams_.host, launches_label_, kLaunchesOfCall * launch_);
  out_.after(streams_.tp, streams_.compute);
  out_.collective(streams_.tp, label, func, groups_.tp, type, count);
  hold_host();
}

void PassWriter::hold_host() {
  if (streams_.host > 0 && plan_.spec->parallel.blocking_wait)
    out_.after(streams_.host, streams_.tp);
}

// Gathers the whole sequence.
void PassWriter::gather(std::uint64_t elements) {
  if (!plan_.sequence_parallel) return;
  launch_tp(Func::all_gather, gather_label_, elements);
  out_.after(streams_.compute, streams_.tp);
}

// After a row-parallel product or the embedding: the sum, or under sequence parallelism this rank's
// part of it.
void PassWriter::reduce_hidden() {
  if (plan_.tp == 1) return;
  if (plan_.sequence_parallel)
    launch_tp(Func::reduce_scatter, scatter_label_, plan_.hidden_states());
  else
    launch_tp(Func::all_reduce, reduce_label_, plan_.hidden_states());
  out_.after(streams_.compute, streams_.tp);
}

// The input's gradient, then the weight's.
void PassWriter::column_backward(std::uint32_t label, const WorkTimes& product,
                                 std::uint64_t elements, DataType gathered) {
  if (!inputs()) return compute(label, product.weight);
  if (plan_.sequence_parallel) launch_tp(Func::all_gather, gather_label_, gathered, elements);
  compute(label, product.input);
  const bool reduces = plan_.tp > 1 && !plan_.sequence_parallel,
             beside = plan_.spec->parallel.async_allreduce;
  if (plan_.sequence_parallel) {
    out_.after(streams_.compute, streams_.tp);
    launch_tp(Func::reduce_scatter, scatter_label_, elements);
  }
  if (reduces && beside) launch_tp(Func::all_reduce, reduce_label_, elements);
  if (weights()) compute(label, product.weight);
  if (reduces && !beside) launch_tp(Func::all_reduce, reduce_label_, elements);
  if (plan_.tp > 1) out_.after(streams_.compute, streams_.tp);
}

// ---- Layers ----

void PassWriter::await(LayerPart module) {
  if (before_) before_(module);
}

void PassWriter::half_forward(const Half& half) {
  if (overlaps_tp()) return overlapped_forward(half);
  await(half.first);
  gather_operand(plan_.hidden_states());
  if (before_ || (half.has_core() && plan_.cp > 1)) {
    compute(half.label, forward_of(half.column));
    if (half.has_core()) core_forward(half);
    await(half.second);
    compute(half.label, forward_of(half.row));
  } else {
    compute(half.label, forward_of(half.column) + half.core.forward + forward_of(half.row));
  }
  reduce_hidden();
}

// From the gradient of the half's output back through the row-parallel product and the attention
// core.
void PassWriter::row_and_core_backward(const Half& half) {
  if (overlaps_tp()) {
    overlapped_row_backward(half);
  } else {
    if (inputs()) gather_operand(plan_.hidden_states());  // the output's gradient
    compute(half.label, backward_of(half.row));
  }
  linear_backward_ended();
  if (inputs() && half.has_core()) {
    if (plan_.spec->parallel.recompute == Recompute::selective) {
      Half again = half;
      again.label = labels_.again;
      core_forward(again);
    }
    core_backward(half);
  }
}

void PassWriter::half_backward(const Half& half) {
  row_and_core_backward(half);
  linear_backward(half.label, half.column, plan_.hidden_states());
}

void PassWriter::forward_of_layer(int layer, std::uint32_t attention_label,
                                  std::uint32_t ffn_label) {
  if (plan_.model.is_latent())
    latent_forward(attention_label);
  else
    half_forward(attention(attention_label));
  if (has_experts(layer)) {
    await(LayerPart::fc2);
    experts_forward(ffn_label, layer);
  } else {
    half_forward(feed_forward(ffn_label, times_.fc1, times_.fc2));
  }
}

void PassWriter::layer_forward(int layer) {
  forward_of_layer(layer, labels_.attention, labels_.ffn);
}

void PassWriter::layer_backward(int layer) {
  if (inputs() && recomputes()) {
    forward_of_layer(layer, labels_.again, labels_.again);
    reduce_maxima(Pass::forward);
  }
  if (has_experts(layer))
    experts_backward(labels_.ffn, layer);
  else
    half_backward(feed_forward(labels_.ffn, times_.fc1, times_.fc2));
  if (plan_.model.is_latent())
    latent_backward(labels_.attention);
  else
    half_backward(attention(labels_.attention));
}

void PassWriter::embedding_forward() { reduce_hidden(); }

void PassWriter::embedding_backward() {
  if (weights()) gather(plan_.hidden_states());
}

// Logits, then the loss over the parts of the vocabulary: the largest logit, the target's logit,
// the sum of exponentials. Modules of multi-token prediction come before the model's own head.
void PassWriter::head_forward() {
  for (std::uint64_t k = 0; k <= plan_.model.mtp; ++k) {
    gather(plan_.hidden_states());
    compute(labels_.head, head_.forward);
    if (plan_.tp > 1)
      for (const Reduction reduction : {Reduction::max, Reduction::sum, Reduction::sum})
        exposed_tp(Func::all_reduce, loss_label_, DataType::float32, plan_.tokens, reduction);
    if (k < plan_.model.mtp) mtp_accuracy();
  }
}

void PassWriter::head_backward() {
  for (std::uint64_t k = 0; k <= plan_.model.mtp; ++k)
    column_backward(labels_.head, head_, plan_.hidden_states(), plan_.activations);
}

}  // namespace ghostrank
