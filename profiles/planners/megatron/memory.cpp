#include "profiles/planners/megatron/memory.h"

#include <algorithm>
#include <vector>

#include "profiles/planners/megatron/routing.h"
#include "profiles/planners/pipeline/memory.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

// Sizes of a layer's tensors on one rank, in bytes.
class Activations {
 public:
  // `routed_rows`: rows that the rank's experts get.
  Activations(const MegatronPlan& plan, double routed_rows)
      : model_(plan.model),
        element_(bytes_of(plan.activations)),
        operand_(plan.fp8() ? 1 : element_),
        fp8_(plan.fp8().has_value()),
        tokens_(real(plan.tokens)),
        own_tokens_(plan.sequence_parallel ? tokens_ / plan.tp : tokens_),
        tp_(plan.tp),
        positions_(real(plan.model.sequence)),
        fused_(plan.spec->parallel.attention == Attention::fused),
        routed_rows_(routed_rows),
        expert_tp_(plan.etp) {}

  // Tensors of `width` elements per token: on every rank whole (or, under sequence parallelism, a
  // part of the sequence), or split among the tensor-parallel ranks.
  double whole(double width) const { return element_ * own_tokens_ * width; }
  double split(double width) const { return element_ * tokens_ * width / tp_; }
  // Likewise inputs of linear layers, which are kept as their products take them.
  double whole_input(double width) const { return operand_ * own_tokens_ * width; }
  double split_input(double width) const { return operand_ * tokens_ * width / tp_; }
  // A byte per element.
  double dropout_mask() const { return model_.dropout ? own_tokens_ * hidden() : 0; }
  double hidden() const { return real(model_.hidden); }

  double attention() const {
    double bytes = whole(hidden()) + whole_input(hidden()) + dropout_mask();  // norm, products
    double result = real(model_.query_width());                               // of the core
    if (model_.is_latent()) {
      const LatentAttention& l = model_.latent;
      result = real(model_.heads * l.value);
      bytes += whole(real(l.q_lora + l.kv_lora + l.rope));
      bytes += split(real(model_.heads) * real(2 * (l.nope + l.rope) + 2 * l.value));
    } else {
      bytes += split(2 * real(model_.query_width()) + 2 * real(model_.key_width()));
    }
    // The fused core keeps its result, too, which otherwise is the input of the projection alone.
    if (fp8_) bytes += split_input(result) - (fused_ ? 0 : split(result));
    return bytes;
  }

  // Scores after the softmax; with dropout also its mask and what it leaves.
  double scores() const {
    if (fused_) return 0;
    const double bytes = model_.dropout ? 2 * element_ + 1 : element_;
    return bytes * real(model_.heads) * positions_ * tokens_ / tp_;
  }

  double feed_forward(double ffn) const {
    return whole(hidden()) + whole_input(hidden()) + inner(tokens_ * ffn / tp_) + dropout_mask();
  }

  // Rows that arrive, the experts' inner rows, what they return. The ranks that share an expert see
  // all of its rows. Shared experts see every token. The router's probabilities are small.
  double experts() const {
    const Experts& experts = model_.experts;
    const double ffn = real(experts.ffn), shared = ffn * real(experts.shared);
    // The router keeps the hidden states as they are, and shared experts as they multiply them.
    return whole(2 * hidden()) + (fp8_ && shared > 0 ? whole_input(hidden()) : 0) +
           routed_rows_ * (element_ + operand_) * expert_tp_ * hidden() +
           inner(routed_rows_ * ffn) + inner(tokens_ * shared / tp_) + dropout_mask();
  }

 private:
  // Bytes of so many elements before the activation, of both halves where it is gated, and after
  // it.
  double inner(double elements) const {
    return ((model_.gated ? 2 : 1) * element_ + operand_) * elements;
  }

  const Transformer& model_;
  const double element_, operand_;
  const bool fp8_;
  const double tokens_, own_tokens_, tp_, positions_;
  const bool fused_;
  const double routed_rows_, expert_tp_;
};

// Rows that the experts of one rank get, by layer of the model, then by module of multi-token
// prediction.
using LayerRows = std::vector<double>;

// Of every rank of an expert-parallel group; of one rank if routing is even.
std::vector<LayerRows> rows_of_members(const MegatronPlan& plan) {
  if (!plan.is_uneven())
    return {LayerRows(plan.model.layers + plan.model.mtp, real(plan.routed_rows()))};
  Workload unused;
  const std::vector<ExpertRouting> routing = megatron_routing(plan, 1, unused);
  std::vector<LayerRows> out(plan.ep, LayerRows(routing.size()));
  for (std::size_t layer = 0; layer < routing.size(); ++layer)
    for (std::size_t member = 0; member < routing[layer].rows.size(); ++member)
      out[member][layer] = real(routing[layer].rows[member]) * plan.ep;
  return out;
}

double layer_activations(const MegatronPlan& plan, bool has_experts, double routed_rows) {
  const Activations sizes(plan, routed_rows);
  const bool again = plan.spec->parallel.recompute != Recompute::none;
  return sizes.attention() + (again ? 0 : sizes.scores()) +
         (has_experts ? sizes.experts() : sizes.feed_forward(real(plan.model.ffn)));
}

double layer_activations(const MegatronPlan& plan, int layer, const LayerRows& rows) {
  return layer_activations(plan, plan.model.has_experts(static_cast<std::uint64_t>(layer)),
                           rows[layer]);
}

// Activations of one chunk and micro-batch, in bytes.
double chunk_activations(const MegatronPlan& plan, const Part& part, const LayerRows& rows) {
  const Activations sizes(plan, 0);
  const Recompute recompute = plan.spec->parallel.recompute;
  double bytes = part.embedding ? sizes.dropout_mask() : 0;
  const auto layer = [&](int number) {
    if (recompute == Recompute::full) return sizes.whole(sizes.hidden());  // its input
    return layer_activations(plan, number, rows);
  };
  for (int i = 0; i < part.layers; ++i) bytes += layer(part.first_layer + i);
  for (int i = 0; i < part.mtp; ++i)
    bytes += layer(static_cast<int>(plan.model.layers) + i) + sizes.whole(2 * sizes.hidden());
  return bytes;
}

// While a pass runs: the logits in fp32 and the inputs of norm and head, of the model and of every
// module of multi-token prediction, which go with their backward pass; under full recomputation,
// the layer that is computed again.
double passing_activations(const MegatronPlan& plan, const Part& part, const LayerRows& rows) {
  const Activations sizes(plan, 0);
  double bytes = 0;
  if (part.head)
    bytes = real(1 + plan.model.mtp) * (sizes.whole(2 * sizes.hidden()) +
                                        4 * real(plan.tokens) * real(plan.vocabulary) / plan.tp);
  if (plan.spec->parallel.recompute != Recompute::full) return bytes;
  const auto again = [&](int layer) {
    bytes = std::max(bytes, sizes.scores() + layer_activations(plan, layer, rows));
  };
  for (int i = 0; i < part.layers; ++i) again(part.first_layer + i);
  for (int i = 0; i < part.mtp; ++i) again(static_cast<int>(plan.model.layers) + i);
  return bytes;
}

double stage_activations(const MegatronPlan& plan, int stage, const LayerRows& rows) {
  std::vector<double> kept, passing;  // by chunk
  for (int c = 0; c < plan.pipeline.chunks; ++c) {
    const Part& part = plan.parts[plan.pipeline.part(stage, c)];
    kept.push_back(chunk_activations(plan, part, rows));
    passing.push_back(passing_activations(plan, part, rows));
  }
  return most_kept(plan.pipeline, stage, kept, passing);
}

// tp_comm_overlap has a buffer of whole hidden states for every kind of call that it overlaps.
double overlap_buffers(const MegatronPlan& plan) {
  constexpr double kGathers = 8, kScatters = 2;  // four of them forward, six backward
  if (!plan.spec->parallel.tp_comm_overlap || plan.tp == 1) return 0;
  return real(plan.hidden_states()) *
         (kGathers * bytes_of(plan.gathered()) + kScatters * bytes_of(plan.activations));
}

// Of the fullest rank of the stage: `members` are those of an expert-parallel group.
GpuMemory memory_of(const MegatronPlan& plan, int stage, const std::vector<LayerRows>& members) {
  const JobSpec& spec = *plan.spec;
  GpuMemory out;
  for (int chunk = 0; chunk < plan.pipeline.chunks; ++chunk)
    for (const Parameter& p :
         megatron_parameters(plan, plan.parts[plan.pipeline.part(stage, chunk)])) {
      const double numel = real(p.numel);
      out.weights += numel * bytes_of(plan.activations);
      // The fp8 weights of a step, which its micro-batches share.
      if (plan.fp8() && p.linear) out.weights += numel * megatron_scaling(plan).copies();
      out.gradients += numel * bytes_of(plan.gradients);
      out.optimizer += numel * optimizer_bytes(spec.precision) /
                       (spec.parallel.distributed_optimizer ? plan.holders(p.expert) : 1);
    }
  for (const LayerRows& rows : members)
    out.activations = std::max(out.activations, stage_activations(plan, stage, rows));
  out.activations += overlap_buffers(plan);
  return out;
}

}  // namespace

double megatron_layer_activations(const MegatronPlan& plan, bool has_experts) {
  return layer_activations(plan, has_experts, real(plan.routed_rows()));
}

GpuMemory megatron_memory(const MegatronPlan& plan, int stage) {
  return memory_of(plan, stage, rows_of_members(plan));
}

GpuMemory megatron_memory(const MegatronPlan& plan) {
  const std::vector<LayerRows> members = rows_of_members(plan);
  GpuMemory most;
  for (int stage = 0; stage < plan.pp; ++stage)
    if (const GpuMemory here = memory_of(plan, stage, members); here.total() > most.total())
      most = here;
  return most;
}

}  // namespace ghostrank
