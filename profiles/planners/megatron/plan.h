// Megatron-core's plan of a job: sizes of the parallel dimensions, the layers of each
// pipeline part, a rank's parameters of them, and the times of their products.
//
// All sizes are those of one rank, after tensor parallelism: `numel` is what the rank holds.
// Errors: Error(usage), with the offending value and the nearest values that fit. Threading: plain
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiles/device/kernels/of_layer.h"
#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/pipeline/layer_split.h"
#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

struct MegatronPlan {
  const JobSpec* spec = nullptr;
  Transformer model;
  Pipeline pipeline;
  std::vector<Part> parts;  // parts of the pipeline in the order of the model
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int ep = 1, etp = 1;  // ranks that share a layer's experts; ranks that share one expert
  int micro_batch = 1;
  bool sequence_parallel = false;  // only if tp > 1
  DataType activations = DataType::bfloat16, gradients = DataType::float32;
  std::uint64_t vocabulary = 0;  // padded
  std::uint64_t tokens = 0;      // of one micro-batch on a rank, not divided by tp

  int ranks() const { return tp * cp * dp * pp; }
  // Embedding and head are on one stage, so tied embeddings need no reduction.
  bool ends_meet() const { return pipeline.ends_meet(); }
  // The multi-token prediction modules are on a stage without the embedding, and have a copy of it.
  bool has_embedding_copy() const {
    return model.mtp > 0 && pipeline.stage_of(mtp_part()) != pipeline.stage_of(0);
  }
  // The part that holds the multi-token prediction modules; there is only one.
  int mtp_part() const;
  // The modules are apart from the head, so stages send hidden states of different lengths.
  bool mtp_stands_alone() const { return model.mtp > 0 && parts.back().mtp == 0; }
  int expert_dp() const { return tp * cp * dp / (ep * etp); }
  // Ranks that hold the same parameters and reduce their gradients together.
  int holders(bool expert) const {
    return (expert ? expert_dp() : dp * cp) * (pipeline.is_bidirectional() ? 2 : 1);
  }
  std::uint64_t experts_here() const { return model.experts.count / ep; }
  bool is_uneven() const {
    return spec->parallel.expert_imbalance > 0 || !spec->parallel.expert_load.empty();
  }
  // Roles of a stage: with uneven routing every ep rank is a role, because its experts' load
  // differs.
  int roles_per_stage() const { return is_uneven() ? ep : 1; }
  // Per layer and micro-batch: tokens that a rank routes, and rows of hidden states that it sends,
  // one for each expert that a token visits.
  std::uint64_t routed_tokens() const { return tokens / tp; }
  std::uint64_t routed_rows() const { return tokens * model.experts.top_k / tp; }
  const std::optional<Fp8>& fp8() const { return spec->precision.fp8; }
  // Type in which sequence parallelism gathers the operands of linear layers.
  DataType gathered() const { return fp8() ? DataType::uint8 : activations; }
  // Elements of a micro-batch's hidden states on a whole tensor-parallel group.
  std::uint64_t hidden_states() const { return tokens * model.hidden; }
};

// Throws Error(usage) unless the plan fits the model, the cluster and the device.
MegatronPlan megatron_plan(const JobSpec& spec);

// The modules of a layer, in the order in which its forward needs them. In other units: the first.
enum class LayerPart : std::uint8_t { qkv, projection, fc1, fc2 };

struct Parameter {
  std::uint64_t numel = 0;
  int unit = 0;  // of its part
  LayerPart module = LayerPart::qkv;
  bool partial = false;  // under sequence parallelism each tp rank has a partial gradient
  bool whole = false;    // not split by tp; `partial` implies it
  bool expert = false;   // reduced over the ranks that hold the same experts
  bool tied = false;     // the word embedding, if the head uses it too
  bool linear = false;   // weight of a linear layer, which may multiply in fp8
};
// In registration order.
std::vector<Parameter> megatron_parameters(const MegatronPlan& plan, const Part& part);
// Elements of all parameters of a stage, over all ranks that share them. A copy of the embedding,
// and a head that is the embedding, do not count. In a bidirectional pipeline two stages hold the
// same parameters.
std::uint64_t megatron_stored(const MegatronPlan& plan, int stage);

// Time on the GPU, and the host's time to launch the kernels.
struct GpuWork {
  Picoseconds time = 0, launching = 0;
  GpuWork& operator+=(const GpuWork& other) {
    time += other.time;
    launching += other.launching;
    return *this;
  }
  friend GpuWork operator+(GpuWork a, const GpuWork& b) { return a += b; }
};
struct WorkTimes {  // forward; backward: the gradient of the input, that of the weights
  GpuWork forward, input, weight;
  GpuWork cast;  // of the weight into fp8, once a step
  friend WorkTimes operator+(const WorkTimes& a, const WorkTimes& b) {
    return {a.forward + b.forward, a.input + b.input, a.weight + b.weight, a.cast + b.cast};
  }
};

// Times of one layer, or of the head.
struct LayerTimes {
  WorkTimes qkv, core, projection, fc1, fc2;
  WorkTimes down, q_up, kv_up;  // latent attention, instead of qkv
  WorkTimes mtp;                // projection of a multi-token prediction module
  WorkTimes router;             // with all kernels before rows travel, where kernels count
  WorkTimes experts;            // both products of the experts
  WorkTimes combine;            // when rows are back; nothing by FLOPs
  WorkTimes shared1, shared2;
};
// How a plan with fp8 scales its tensors on this device.
Fp8Scaling megatron_scaling(const MegatronPlan& plan);
LayerTimes megatron_layer_times(const MegatronPlan& plan);
LayerShape megatron_layer_shape(const MegatronPlan& plan);  // of dense layers, on a rank
WorkTimes megatron_head_times(const MegatronPlan& plan);
Picoseconds megatron_launch(const MegatronPlan& plan);  // the host's time to launch a kernel
// The host holds up the GPU, so that programs show its launches: it is slow, or waits for calls.
bool is_host_bound(const MegatronPlan& plan);

// Throws Error(usage) if parameters, gradients, optimizer state and activations of some rank exceed
// the device's memory. A device without memory_bytes is not checked.
void check_memory(const MegatronPlan& plan);

}  // namespace ghostrank
