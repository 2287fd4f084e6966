// What Megatron-core makes of a job: sizes of the parallel dimensions, which layers a part of the
// pipeline holds, which parameters a rank has of them and how long their products take.
//
// Everything is seen from one rank, tensor-parallel pieces included: `numel` is what the rank
// holds. Errors: usage, with what does not fit and the nearest values that do. Threading: plain
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/model/model.h"
#include "profiles/planners/shared/layer_split.h"
#include "profiles/planners/shared/pipeline.h"

namespace ghostrank {

struct MegatronPlan {
  const JobSpec* spec = nullptr;
  Transformer model;
  Pipeline pipeline;
  std::vector<Part> parts;  // of the pipeline, in the order of the model
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int ep = 1, etp = 1;  // ranks that share a layer's experts; that share one expert
  int micro_batch = 1;
  bool sequence_parallel = false;  // only where tp > 1
  DataType activations = DataType::bfloat16, gradients = DataType::float32;
  std::uint64_t vocabulary = 0;  // padded
  std::uint64_t tokens = 0;      // of one micro-batch at a rank, not split by tp

  int ranks() const { return tp * cp * dp * pp; }
  // The embedding and the head are on one stage: nothing to keep alike where they are tied.
  bool ends_meet() const { return pipeline.ends_meet(); }
  // A module of multi-token prediction is on a stage without the embedding and has a copy.
  bool has_embedding_copy() const {
    return model.mtp > 0 && pipeline.stage_of(mtp_part()) != pipeline.stage_of(0);
  }
  // The part that has the modules of multi-token prediction; there is one.
  int mtp_part() const;
  // They are apart from the head, so stages send hidden states of several lengths.
  bool mtp_stands_alone() const { return model.mtp > 0 && parts.back().mtp == 0; }
  int expert_dp() const { return tp * cp * dp / (ep * etp); }
  // Ranks that hold the same parameters, and reduce their gradients together.
  int holders(bool expert) const {
    return (expert ? expert_dp() : dp * cp) * (pipeline.is_bidirectional() ? 2 : 1);
  }
  std::uint64_t experts_here() const {
    return model.experts.count / static_cast<std::uint64_t>(ep);
  }
  bool is_uneven() const {
    return spec->parallel.expert_imbalance > 0 || !spec->parallel.expert_load.empty();
  }
  // Programs of a stage: ranks whose experts have more to do are roles of their own.
  int roles_per_stage() const { return is_uneven() ? ep : 1; }
  // Tokens that a rank routes per layer and micro-batch; rows of hidden states that it sends to
  // experts, one for each that a token visits.
  std::uint64_t routed_tokens() const { return tokens / static_cast<std::uint64_t>(tp); }
  std::uint64_t routed_rows() const {
    return tokens * model.experts.top_k / static_cast<std::uint64_t>(tp);
  }
  // Elements of the hidden states of a micro-batch, all that a tensor-parallel group works on.
  std::uint64_t hidden_states() const { return tokens * model.hidden; }
};

// Checks that the plan fits the model and the cluster.
MegatronPlan megatron_plan(const JobSpec& spec);

struct Parameter {
  std::uint64_t numel = 0;
  int unit = 0;          // of the part
  bool partial = false;  // under sequence parallelism each tp rank has a part of its gradient
  bool whole = false;    // not split by tp, as all that is partial
  bool expert = false;   // reduced over the ranks that hold the same experts
  bool tied = false;     // the word embedding, where the head uses it too
};
// In registration order.
std::vector<Parameter> megatron_parameters(const MegatronPlan& plan, const Part& part);
// Elements of all parameters of a stage, whatever ranks share them; a head that is the embedding
// does not count. Of a bidirectional pipeline two stages have the same.
std::uint64_t megatron_stored(const MegatronPlan& plan, int stage);

// Forward times of the products of one layer, or of the head.
struct LayerTimes {
  Picoseconds qkv = 0, core = 0, projection = 0, fc1 = 0, fc2 = 0;
  Picoseconds down = 0, q_up = 0, kv_up = 0;  // latent attention, in place of qkv
  Picoseconds mtp = 0;                        // what a module of multi-token prediction projects
  Picoseconds router = 0, expert1 = 0, expert2 = 0, shared1 = 0, shared2 = 0;
};
LayerTimes megatron_layer_times(const MegatronPlan& plan);
Picoseconds megatron_head_time(const MegatronPlan& plan);

// Throws Error(usage) when parameters, gradients, optimizer and activations of some rank are more
// than the device holds; a device without memory_bytes holds everything.
void check_memory(const MegatronPlan& plan);

}  // namespace ghostrank
