// Sizes, parts, parameters and times. megatron/check.cpp refuses values that do not fit.
#include "profiles/planners/megatron/plan.h"

#include <algorithm>
#include <numeric>

#include "profiles/device/compute.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

class Registration {
 public:
  explicit Registration(const MegatronPlan& plan) : plan_(plan), model_(plan.model) {}

  void embedding(bool tied) {
    add(plan_.vocabulary / tp() * model_.hidden, {.tied = tied});
    if (model_.learned_positions) add(model_.positions * model_.hidden, {.whole = true});
  }

  // Parameters from here on belong to this unit.
  void unit(int unit) {
    unit_ = unit;
    module_ = LayerPart::qkv;
  }

  void layer(bool has_experts) {
    const std::uint64_t h = model_.hidden, q = model_.query_width(), kv = model_.key_width();
    norm();
    if (model_.is_latent()) {
      latent_attention();
    } else {
      module_ = LayerPart::projection;
      row_parallel(h, q);
      module_ = LayerPart::qkv;
      column_parallel(q + 2 * kv, h, model_.qkv_bias);
    }
    module_ = LayerPart::fc1;
    norm();
    if (has_experts)
      experts();
    else
      feed_forward(model_.ffn);
    module_ = LayerPart::qkv;
  }

  void mtp_module(bool has_experts) {
    norm();
    norm();
    add(2 * model_.hidden * (model_.hidden / tp()), {.linear = true});
    layer(has_experts);
    norm();
  }

  // The down projections to the latents, and the latents' norms, are whole on every rank.
  void latent_attention() {
    const LatentAttention& latent = model_.latent;
    const std::uint64_t h = model_.hidden, q = model_.heads * (latent.nope + latent.rope);
    add(h * (model_.heads * latent.value / tp()), {.linear = true});
    if (latent.q_lora > 0) add(latent.q_lora * h, {.partial = true, .linear = true});
    add(q / tp() * (latent.q_lora > 0 ? latent.q_lora : h), {.linear = true});
    add((latent.kv_lora + latent.rope) * h, {.partial = true, .linear = true});
    add(model_.heads * (latent.nope + latent.value) / tp() * latent.kv_lora, {.linear = true});
    if (latent.q_lora > 0) norm(latent.q_lora);
    norm(latent.kv_lora);
  }

  void experts() {
    const std::uint64_t h = model_.hidden, f = model_.experts.ffn;
    const std::uint64_t shards = plan_.etp;
    add(model_.experts.count * h, {.partial = true});
    for (std::uint64_t e = 0; e < plan_.experts_here(); ++e)
      add((model_.gated ? 2 : 1) * f / shards * h, {.expert = true, .linear = true});
    for (std::uint64_t e = 0; e < plan_.experts_here(); ++e)
      add(h * (f / shards), {.expert = true, .linear = true});
    if (model_.experts.shared > 0) feed_forward(model_.experts.shared * f);
  }

  void norm() { norm(model_.hidden); }

  void head() { add(plan_.vocabulary / tp() * model_.hidden, {.tied = model_.tied}); }

  std::vector<Parameter> take() { return std::move(out_); }

 private:
  std::uint64_t tp() const { return plan_.tp; }
  void add(std::uint64_t numel, Parameter kind = {}) {
    kind.numel = numel;
    kind.unit = unit_;
    kind.module = module_;
    out_.push_back(kind);
  }
  void feed_forward(std::uint64_t ffn) {
    column_parallel((model_.gated ? 2 : 1) * ffn, model_.hidden, model_.bias);
    if (model_.experts.count == 0) module_ = LayerPart::fc2;
    row_parallel(model_.hidden, ffn);
  }
  void norm(std::uint64_t width) {
    add(width, {.partial = true});
    if (model_.norm_bias) add(width, {.partial = true});
  }
  void column_parallel(std::uint64_t out, std::uint64_t in, bool bias) {
    add(out / tp() * in, {.linear = true});
    if (bias) add(out / tp());
  }
  void row_parallel(std::uint64_t out, std::uint64_t in) {
    add(out * (in / tp()), {.linear = true});
    if (model_.bias) add(out, {.partial = true});
  }

  const MegatronPlan& plan_;
  const Transformer& model_;
  int unit_ = 0;
  LayerPart module_ = LayerPart::qkv;
  std::vector<Parameter> out_;
};

// Beyond this share of the GPU's time, launches may hold the GPU up; any do where the host waits.
constexpr double kHoldsUp = .5;

// A product whose two products of the backward each take as long as its forward.
WorkTimes like_forward(Picoseconds time) { return {{time}, {time}, {time}, {}}; }

WorkTimes played(const ComputeModel& device, const KernelTimes& kernels) {
  const auto work = [&](const Kernels& some) -> GpuWork {
    return {device.on_device(some, "a layer"), device.on_host(some)};
  };
  return {work(kernels.forward), work(kernels.input), work(kernels.weight), work(kernels.cast)};
}

// Replaces times by FLOPs with those of kernels.
void add_kernels(const MegatronPlan& plan, const ComputeModel& device, LayerTimes& times) {
  const LayerKernels kernels = layer_kernels(*device.kernels(), megatron_layer_shape(plan));
  times.qkv = played(device, kernels.qkv);
  times.core = played(device, kernels.core);
  times.projection = played(device, kernels.projection);
  times.fc1 = played(device, kernels.fc1);
  times.fc2 = played(device, kernels.fc2);
  const Experts& e = plan.model.experts;
  if (e.count == 0) return;
  const double ffn = real(e.ffn);
  const ExpertKernels experts = expert_kernels(*device.kernels(), megatron_layer_shape(plan),
                                               {.count = real(e.count),
                                                .top_k = real(e.top_k),
                                                .here = real(plan.experts_here()),
                                                .rows = real(plan.routed_rows()) * plan.etp,
                                                .routed = real(plan.routed_tokens()),
                                                .ffn = ffn / plan.etp,
                                                .shared_ffn = real(e.shared) * ffn / plan.tp});
  times.router = played(device, experts.router);
  times.experts = played(device, experts.experts);
  times.combine = played(device, experts.combine);
  if (e.shared == 0) return;
  times.shared1 = played(device, experts.shared1);
  times.shared2 = played(device, experts.shared2);
}

// Times by FLOPs of linear layers on a rank. Casts into fp8 take the time of their bytes.
class LinearTimes {
 public:
  LinearTimes(const MegatronPlan& plan, const ComputeModel& device)
      : plan_(plan), device_(device), tp_(plan.tp), tokens_(real(plan.tokens)) {}

  // Widths are those of all tensor-parallel ranks together.
  WorkTimes column(double in, double out, bool behind_norm) const {
    return product(2 * tokens_ * in * out / tp_) + casts({.rows = tokens_,
                                                          .own_rows = own_tokens(),
                                                          .in = in,
                                                          .out = out / tp_,
                                                          .gathers_input = plan_.sequence_parallel,
                                                          .behind_norm = behind_norm});
  }
  WorkTimes row(double in, double out) const {
    return product(2 * tokens_ * in * out / tp_) +
           casts({.rows = tokens_,
                  .own_rows = own_tokens(),
                  .in = in / tp_,
                  .out = out,
                  .gathers_gradient = plan_.sequence_parallel});
  }
  // Layers of these widths that every rank has whole.
  WorkTimes whole(double rows, double in, std::initializer_list<double> outs) const {
    WorkTimes all;
    double out = 0;
    for (const double width : outs) {
      if (width > 0) all = all + casts({.rows = rows, .own_rows = rows, .in = in, .out = width});
      out += width;
    }
    return product(2 * rows * in * out) + all;
  }
  // One of the two layers of experts, whose widths are those of a rank.
  WorkTimes experts(double in, double out) const {
    const double rows = tokens_ * real(plan_.model.experts.top_k) * plan_.etp;
    return product(2 * rows * in * out / tp_) +
           casts({.rows = rows / tp_, .own_rows = rows / tp_, .in = in, .out = out},
                 real(plan_.experts_here()));
  }

 private:
  double own_tokens() const { return plan_.sequence_parallel ? tokens_ / tp_ : tokens_; }
  WorkTimes product(double flops) const {
    return like_forward(plan_.fp8() ? device_.fp8_products(flops, "a layer")
                                    : device_.products(flops, "a layer"));
  }
  WorkTimes casts(const LinearShape& layer, double weights = 1) const {
    if (!plan_.fp8()) return {};
    const auto time = [&](const std::vector<double>& kernels) -> GpuWork {
      return {device_.memory(std::accumulate(kernels.begin(), kernels.end(), 0.0), "a cast")};
    };
    Fp8Casts all = fp8_casts(megatron_scaling(plan_), layer, bytes_of(plan_.activations));
    for (double& bytes : all.once) bytes *= weights;
    return {time(all.forward), time(all.input), time(all.weight), time(all.once)};
  }

  const MegatronPlan& plan_;
  const ComputeModel& device_;
  const double tp_, tokens_;
};

LayerTimes times_by_flops(const MegatronPlan& plan, const ComputeModel& device) {
  const Transformer& m = plan.model;
  const double tp = plan.tp, tokens = real(plan.tokens), h = real(m.hidden);
  const LinearTimes linear(plan, device);
  const auto time = [&](double in, double out) {
    return device.products(2 * tokens * in * out / tp, "a layer");
  };
  // No weights: all of the backward is for the input.
  const auto core = [&](double in, double out) -> WorkTimes {
    const Picoseconds forward = time(in, out);
    return {{forward}, {2 * forward}, {}, {}};
  };
  LayerTimes times;
  if (m.is_latent()) {
    const LatentAttention& l = m.latent;
    const double heads = real(m.heads), q_lora = real(l.q_lora), q = heads * real(l.nope + l.rope);
    // Under sequence parallelism a rank computes the latents of its part of the sequence, else of
    // all.
    const double whole = plan.sequence_parallel ? 1 : tp;
    times.down = linear.whole(whole * tokens / tp, h, {q_lora, real(l.kv_lora + l.rope)});
    times.q_up = linear.column(l.q_lora > 0 ? q_lora : h, q, l.q_lora > 0);
    times.kv_up = linear.column(real(l.kv_lora), heads * real(l.nope + l.value), true);
    times.core = core(real(m.sequence), q + heads * real(l.value));
    times.projection = linear.row(heads * real(l.value), h);
  } else {
    times.qkv = linear.column(h, real(m.query_width() + 2 * m.key_width()), true);
    times.core = core(2 * real(m.sequence), real(m.query_width()));
    times.projection = linear.row(real(m.query_width()), h);
  }
  if (m.mtp > 0) times.mtp = linear.column(2 * h, h, false);
  times.fc1 = linear.column(h, (m.gated ? 2 : 1) * real(m.ffn), true);
  times.fc2 = linear.row(real(m.ffn), h);
  if (m.experts.count == 0) return times;
  // A tensor-parallel rank routes its part of the sequence; its experts receive as many rows.
  const double gates = m.gated ? 2 : 1, ffn = real(m.experts.ffn), shard = ffn / plan.etp,
               shared = real(m.experts.shared) * ffn;
  const Picoseconds router = time(h, real(m.experts.count));
  times.router = {{router}, {router}, {router}, {}};
  times.experts = linear.experts(h, gates * shard) + linear.experts(shard, h);
  times.shared1 = linear.column(h, gates * shared, false);
  times.shared2 = linear.row(shared, h);
  return times;
}

}  // namespace

int MegatronPlan::mtp_part() const {
  const auto at = std::find_if(parts.begin(), parts.end(), [](const Part& p) { return p.mtp > 0; });
  return static_cast<int>(at - parts.begin());
}

std::vector<Parameter> megatron_parameters(const MegatronPlan& plan, const Part& part) {
  Registration out(plan);
  const bool copied = plan.has_embedding_copy();
  const int before = part.embedding ? 1 : 0, behind = before + part.layers;
  if (part.embedding) {
    out.embedding(copied || (plan.model.tied && !plan.ends_meet()));
  } else if (part.mtp > 0 && copied) {
    out.unit(behind);
    out.embedding(true);
  }
  for (int i = 0; i < part.layers; ++i) {
    out.unit(before + i);
    out.layer(plan.model.has_experts(part.first_layer + i));
  }
  out.unit(std::min(behind, part.units() - 1));
  if (part.final_norm) out.norm();
  for (int i = 0; i < part.mtp; ++i) {
    out.unit(behind + i);
    out.mtp_module(plan.model.has_experts(plan.model.layers));
  }
  out.unit(part.units() - 1);
  if (part.head && !(plan.model.tied && plan.ends_meet())) out.head();
  return out.take();
}

std::uint64_t megatron_stored(const MegatronPlan& plan, int stage) {
  std::uint64_t elements = 0;
  for (int c = 0; c < plan.pipeline.chunks; ++c) {
    const Part& part = plan.parts[plan.pipeline.part(stage, c)];
    for (const Parameter& p : megatron_parameters(plan, part)) {
      if (p.tied && !part.embedding) continue;  // a copy of the embedding
      const int pieces = p.expert ? plan.ep * plan.etp : p.partial || p.whole ? 1 : plan.tp;
      elements += p.numel * pieces;
    }
  }
  return elements;
}

LayerShape megatron_layer_shape(const MegatronPlan& plan) {
  const Transformer& m = plan.model;
  const std::uint64_t tp = plan.tp, cp = plan.cp;
  LayerShape shape;
  shape.tokens = plan.tokens;
  shape.own_tokens = plan.sequence_parallel ? plan.tokens / tp : plan.tokens;
  shape.hidden = m.hidden;
  shape.query = m.query_width() / tp;
  shape.key = m.key_width() / tp;
  shape.ffn = m.ffn / tp;
  shape.heads = m.heads / tp;
  shape.head_width = m.head_width;
  shape.queries = m.sequence / cp;
  shape.keys = m.sequence;
  shape.gated = m.gated;
  shape.bias = m.bias;
  shape.dropout = m.dropout;
  shape.rotary = m.rotary;
  shape.fused_attention = plan.spec->parallel.attention == Attention::fused;
  shape.fused_accumulation = plan.spec->parallel.fused_accumulation;
  shape.element = bytes_of(plan.activations);
  shape.gradient = bytes_of(plan.gradients);
  if (plan.fp8()) shape.fp8 = megatron_scaling(plan);
  return shape;
}

Fp8Scaling megatron_scaling(const MegatronPlan& plan) {
  constexpr double kBlackwell = 10;  // compute capability
  return {plan.spec->device.compute_capability < kBlackwell,
          plan.fp8()->recipe == Fp8Recipe::tensorwise};
}

LayerTimes megatron_layer_times(const MegatronPlan& plan) {
  const ComputeModel device(*plan.spec);
  LayerTimes times = times_by_flops(plan, device);
  if (device.kernels()) add_kernels(plan, device, times);
  return times;
}

WorkTimes megatron_head_times(const MegatronPlan& plan) {
  const ComputeModel device(*plan.spec);
  if (device.kernels())
    return played(device, head_kernels(*device.kernels(), megatron_layer_shape(plan),
                                       plan.vocabulary / plan.tp));
  const double flops =
      2 * real(plan.tokens) * real(plan.model.hidden) * real(plan.vocabulary) / plan.tp;
  return like_forward(device.products(flops, "the head"));
}

Picoseconds megatron_launch(const MegatronPlan& plan) {
  return ComputeModel(*plan.spec).on_host({0, 1});
}

bool is_host_bound(const MegatronPlan& plan) {
  const LayerTimes times = megatron_layer_times(plan);
  GpuWork all;
  const auto add = [&](std::initializer_list<const WorkTimes*> parts) {
    for (const WorkTimes* part : parts) all += part->forward + part->input + part->weight;
  };
  for (std::uint64_t l = 0; l < plan.model.layers; ++l) {
    add({&times.qkv, &times.core, &times.projection});
    if (plan.model.has_experts(l))
      add({&times.router, &times.experts, &times.combine, &times.shared1, &times.shared2});
    else
      add({&times.fc1, &times.fc2});
  }
  const bool waits = plan.spec->parallel.blocking_wait && plan.tp > 1;
  return static_cast<double>(all.launching) >
         (waits ? 0 : kHoldsUp) * static_cast<double>(all.time);
}

}  // namespace ghostrank
