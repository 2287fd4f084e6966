#include "profiles/planners/megatron/fp8.h"

#include "profiles/planners/megatron/passes.h"
#include "profiles/planners/megatron/plan.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kForward = 3, kBackward = 2;  // tensors of a product
constexpr std::uint64_t kCore = 3;                    // products that attention's core counts as

// Products of a layer that have scales.
std::uint64_t scaled_products(const MegatronPlan& plan, bool has_experts) {
  const Transformer& model = plan.model;
  const std::uint64_t attention =
      model.is_latent() ? (model.latent.q_lora > 0 ? 5 : 4) : 2;  // q, kv down and up; projection
  if (!has_experts) return attention + kCore + 2;
  return attention + kCore + 2 * plan.experts_here() + (model.experts.shared > 0 ? 2 : 0);
}

}  // namespace

Fp8Maxima megatron_maxima(const MegatronPlan& plan, int stage) {
  if (!plan.fp8() || plan.fp8()->recipe != Fp8Recipe::delayed) return {};
  std::uint64_t products = 0;
  for (int c = 0; c < plan.pipeline.chunks; ++c) {
    const Part& part = plan.parts[plan.pipeline.part(stage, c)];
    const auto layer = [&](std::uint64_t number) {
      products += scaled_products(plan, plan.model.has_experts(number));
    };
    for (int i = 0; i < part.layers; ++i) layer(static_cast<std::uint64_t>(part.first_layer + i));
    for (int i = 0; i < part.mtp; ++i) layer(plan.model.layers), ++products;  // and its projection
  }
  return {kForward * products, kBackward * products};
}

// Before a linear layer's product: gathers its operand's whole sequence.
void PassWriter::gather_operand(std::uint64_t elements) {
  if (!plan_.sequence_parallel) return;
  agree_on_scale();
  launch_tp(Func::all_gather, gather_label_, plan_.gathered(), elements);
  out_.after(streams_.compute, streams_.tp);
}

void PassWriter::agree_on_scale() {
  if (plan_.fp8() && plan_.fp8()->recipe == Fp8Recipe::tensorwise)
    exposed_tp(Func::all_reduce, maxima_label_, DataType::float32, 1, Reduction::max);
}

// The compute stream waits for it, as in Transformer Engine.
void PassWriter::reduce_maxima(Pass pass) {
  const std::uint64_t count = pass == Pass::forward ? maxima_.forward : maxima_.backward;
  if (groups_.amax == kNoGroup || count == 0) return;
  out_.collective(streams_.compute, maxima_label_, Func::all_reduce, groups_.amax,
                  DataType::float32, count, 0, 0, Reduction::max);
}

void PassWriter::layers_backward_ended() {
  if (inputs() && !recomputes()) reduce_maxima(Pass::backward);
}

// Every linear layer takes itself for the first of what was computed again.
void PassWriter::linear_backward_ended(int layers) {
  if (!inputs() || !recomputes()) return;
  for (int i = 0; i < layers; ++i) reduce_maxima(Pass::backward);
}

}  // namespace ghostrank
