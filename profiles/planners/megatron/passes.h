// The forward and the backward of one part of the pipeline for one micro-batch, as ops.
//
//   one half of a layer (attention, feed-forward), tensor parallel with sequence parallelism
//
//   forward    compute |     |qkv core proj|     |
//              tp      |- AG -|             |- RS -|
//   backward   compute |     |proj, core|dgrad qkv|wgrad qkv|
//              tp      |- AG -|          |-- AG --|-- RS ---|
//
// Without sequence parallelism an all-reduce ends the forward, and one follows the backward of the
// column-parallel product. An all-gather that only the weight gradient needs overlaps the product
// for the input gradient; the call that carries the input gradient on overlaps the product for the
// weight gradient. The order is that of megatron/core/tensor_parallel/layers.py.
//
// Without async_allreduce (Megatron-LM until 2022) the input gradient's all-reduce is exposed.
// tp_comm_overlap cuts the calls that nothing overlaps into parts: megatron/userbuffers.cpp.
//
// A zero-bubble schedule splits the backward into two passes: first everything that leads to the
// input's gradient, communication included, then only the products for the weights.
//
// Where the host's launches hold up the GPU they are a stream of their own: kernels wait for the
// launches before them, a launch never for kernels, except at the start of a pass, and with
// blocking_wait for tensor-parallel calls. At the start of a pass the host has waited for the GPU
// to read a timer (Megatron-LM until 2022), or whether the loss is a number (since 2023).
//
// Context parallelism belongs to the attention core. Only one stream uses a communicator, so every
// rank enters its calls in the same order. Threading: one thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiles/planners/megatron/fp8.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/megatron/routing.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {

// Kinds of groups and streams, by index. A group of one rank has no index, and no op uses it.
inline constexpr std::uint16_t kNoGroup = 0xffff;
struct MegatronGroups {
  std::uint16_t tp = kNoGroup, cp = kNoGroup, cp_a2a = kNoGroup, cp_p2p = kNoGroup, dp = kNoGroup,
                forward = kNoGroup, backward = kNoGroup, embedding = kNoGroup, norm = kNoGroup,
                ep = kNoGroup, etp = kNoGroup, tp_ep = kNoGroup, edp = kNoGroup,
                replicas = kNoGroup, ep_rail = kNoGroup, ep_node = kNoGroup, expert_norm = kNoGroup,
                amax = kNoGroup;
  int ep_nodes = 1;  // nodes that an ep group spans, with deduplicated dispatch
};
struct MegatronStreams {
  std::size_t compute = 0, tp = 0, tp_send = 0, cp = 0, cp_send = 0, dp = 0, ep = 0, edp = 0,
              host = 0;  // host: if not 0
};

class PassWriter {
 public:
  // `routing`: by layer, empty if it is even. `ep_rank`: this rank's position in its ep group.
  // `maxima`: megatron_maxima() of this rank.
  PassWriter(ProgramBuilder& out, const MegatronPlan& plan, const MegatronGroups& groups,
             const MegatronStreams& streams, std::span<const ExpertRouting> routing, int ep_rank,
             const Fp8Maxima& maxima);

  // Ops from here on belong to this pass: "F3" is the forward of micro-batch 3. `first`: it is the
  // step's first of this part, which casts weights into fp8.
  void begin(Pass pass, int micro_batch, bool first = false);
  // `module` is called before each module of the layers that are written from here on, before
  // experts once, with fc2; null: nothing is called.
  void before(std::function<void(LayerPart)> module) { before_ = std::move(module); }

  void embedding_forward();
  void embedding_backward();
  void layer_forward(int layer);
  void layer_backward(int layer);
  void mtp_forward(int layer);  // a multi-token prediction module, by the layer it counts as
  void mtp_backward(int layer);
  void head_forward();  // of the model, and of every multi-token prediction module
  void head_backward();
  // megatron/fp8.cpp: after all layers of a part forward; after its first one backward.
  void layers_forward_ended() { reduce_maxima(Pass::forward); }
  void layers_backward_ended();

 private:
  // A column-parallel product, the attention core (nothing in other halves) and a row-parallel
  // product.
  struct Half {
    std::uint32_t label = 0;
    WorkTimes column, core, row;
    LayerPart first = LayerPart::fc1, second = LayerPart::fc2;
    bool has_core() const { return core.forward.time > 0; }
  };
  struct Labels {
    std::uint32_t attention = 0, ffn = 0, head = 0, mtp = 0, again = 0;
  };

  void compute(std::uint32_t label, const GpuWork& work);
  void compute(std::uint32_t label, Picoseconds time) { compute(label, GpuWork{time}); }
  // megatron/userbuffers.cpp
  bool overlaps_tp() const { return plan_.spec->parallel.tp_comm_overlap && plan_.tp > 1; }
  // megatron/fp8.cpp
  void gather_operand(std::uint64_t elements);
  void reduce_maxima(Pass pass);
  void agree_on_scale();
  void linear_backward_ended(int layers = 1);
  bool recomputes() const { return plan_.spec->parallel.recompute == Recompute::full; }
  // A product's forward; in the step's first with the cast of the weight.
  GpuWork forward_of(const WorkTimes& product) const {
    return casts_ ? product.cast + product.forward : product.forward;
  }
  void gathered_product(std::uint32_t label, const GpuWork& product);
  void scattered_product(std::uint32_t label, const GpuWork& product);
  void overlapped_forward(const Half& half);
  void overlapped_row_backward(const Half& half);

  void await(LayerPart module);
  void half_forward(const Half& half);
  void half_backward(const Half& half);
  void forward_of_layer(int layer, std::uint32_t attention, std::uint32_t ffn);
  void row_and_core_backward(const Half& half);
  // megatron/latent.cpp
  void latent_forward(std::uint32_t label);
  void latent_backward(std::uint32_t label);
  std::uint64_t latent_queries() const;
  // megatron/mtp.cpp
  void mtp_project(std::uint32_t label);
  void mtp_accuracy();
  // megatron/experts.cpp
  void experts_forward(std::uint32_t label, int layer);
  void experts_backward(std::uint32_t label, int layer);
  void route(Func func, std::uint16_t group, DataType type, std::uint64_t count);
  // Payload of an exchange with experts: hidden states, or the weights of a token's experts.
  enum class Cargo : std::uint8_t { hidden, weights };
  void exchange(const ExpertRouting* routing, Cargo cargo, bool back);
  void exchange_once(const ExpertRouting* routing, Cargo cargo, bool back);
  void move_rows(std::uint16_t group, DataType type, const std::uint32_t* list, std::uint64_t even);
  const ExpertRouting* routing_of(int layer) const;
  std::uint64_t arriving_rows(const ExpertRouting* routing) const;
  GpuWork of_rows(const GpuWork& even, const ExpertRouting* routing) const;
  bool has_experts(int layer) const {
    return plan_.model.has_experts(static_cast<std::uint64_t>(layer));
  }
  void core_forward(const Half& half);
  void core_backward(const Half& half);
  void gather(std::uint64_t elements);
  void reduce_hidden();
  void exposed_tp(Func func, std::uint32_t label, DataType type, std::uint64_t count,
                  Reduction reduction = Reduction::sum);
  void hold_host();  // until the last tp call has ended, if it waits for calls
  void launch_tp(Func func, std::uint32_t label, std::uint64_t elements) {
    launch_tp(func, label, plan_.activations, elements);
  }
  void launch_tp(Func func, std::uint32_t label, DataType type, std::uint64_t elements);
  bool inputs() const { return pass_ != Pass::weight_backward; }
  bool weights() const { return pass_ != Pass::input_backward; }
  // `gathered`: the type in which the input is gathered again.
  void column_backward(std::uint32_t label, const WorkTimes& product, std::uint64_t elements,
                       DataType gathered);
  void linear_backward(std::uint32_t label, const WorkTimes& product, std::uint64_t elements) {
    column_backward(label, product, elements, plan_.gathered());
    linear_backward_ended();
  }
  // The part of a product's backward that this pass computes.
  GpuWork backward_of(const WorkTimes& product) const {
    return (inputs() ? product.input : GpuWork{}) + (weights() ? product.weight : GpuWork{});
  }
  // Context parallelism: a ring of `ranks`, or a swap of heads for sequence among `ranks`.
  void ring_step(std::uint16_t group, int ranks, std::uint32_t label, std::uint64_t elements);
  void ring_forward(std::uint16_t group, int ranks, const Half& half);
  void ring_backward(std::uint16_t group, int ranks, const Half& half);
  void await_ring();
  void cp_call(std::uint16_t group, Func func, std::uint64_t count);
  void share_keys_and_values(Func func);
  void exchange_heads(std::uint16_t group, int ranks, std::initializer_list<std::uint64_t> tensors);
  Half attention(std::uint32_t label) const;
  static Half feed_forward(std::uint32_t label, const WorkTimes& fc1, const WorkTimes& fc2) {
    return {label, fc1, {}, fc2, LayerPart::fc1, LayerPart::fc2};
  }

  ProgramBuilder& out_;
  const MegatronPlan& plan_;
  const MegatronGroups groups_;
  const MegatronStreams streams_;
  const LayerTimes times_;
  const WorkTimes head_;
  const Picoseconds launch_;  // of a kernel
  const std::span<const ExpertRouting> routing_;
  const int ep_rank_;
  const Fp8Maxima maxima_;
  bool casts_ = false;
  // Elements per rank: queries, keys, values, and the attention core's output.
  std::uint64_t q_elements_ = 0, k_elements_ = 0, v_elements_ = 0, o_elements_ = 0;
  std::uint32_t gather_label_, scatter_label_, reduce_label_, loss_label_, kv_label_, dkv_label_,
      heads_label_, rows_label_, best_label_, launches_label_, maxima_label_;
  Labels labels_;
  Pass pass_ = Pass::forward;
  std::function<void(LayerPart)> before_;
};

}  // namespace ghostrank
