// The kernels that a framework launches for one transformer layer, and for the head with its
// loss: forward, the gradient of the input, the gradient of the weights.
//
//   attention   norm, product to queries, keys and values | core | product, bias + dropout + add
//   ffn         norm, product, activation                        | product, bias + dropout + add
//   experts     norm, router, rows of each token | rows by expert, both products of every expert
//               with the activation between them, rows as they came | sum of a token's rows, add
//
// The core is unfused (scores in memory: product, softmax, dropout, product) or one fused kernel,
// which skips the masked half of the scores. Kernels are those of Megatron-LM: bias and activation,
// bias and dropout and addition, scale and mask and softmax are one kernel each, the last only for
// batches of four score matrices, else five. Products of weights' gradients add them to the buffer
// of gradients themselves, or a kernel of its own does.
//
// Linear layers may multiply in fp8 (kernels/fp8.h); the core, norms, activations and the head do
// not. A norm before a product then writes fp8, if scales are known beforehand.
//
// Everything is of one rank after tensor parallelism. Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "profiles/device/kernels/fp8.h"
#include "profiles/device/kernels/kernels.h"

namespace ghostrank {

struct LayerShape {
  std::uint64_t tokens = 0;      // that products see
  std::uint64_t own_tokens = 0;  // that norms, dropouts and additions see (sequence parallelism)
  std::uint64_t hidden = 0;
  std::uint64_t query = 0, key = 0, ffn = 0;  // widths on this rank
  std::uint64_t heads = 0, head_width = 0;    // heads on this rank
  std::uint64_t queries = 0, keys = 0;        // positions of one sample on this rank; of all ranks
  bool gated = false, bias = false, dropout = false, rotary = false, fused_attention = false;
  bool fused_accumulation = false;   // of weights' gradients
  double element = 2, gradient = 4;  // bytes of an activation, of a gradient of a weight
  std::optional<Fp8Scaling> fp8;     // of linear layers; empty: they multiply as all else
};

struct KernelTimes {
  Kernels forward, input, weight;
  Kernels cast;  // of the weight into fp8, once a step
  friend KernelTimes operator+(const KernelTimes& a, const KernelTimes& b) {
    return {a.forward + b.forward, a.input + b.input, a.weight + b.weight, a.cast + b.cast};
  }
};

struct LayerKernels {
  KernelTimes qkv, core, projection, fc1, fc2;
};

LayerKernels layer_kernels(const KernelModel& device, const LayerShape& shape);

// A layer's experts on one rank, in place of its feed-forward part. Every expert has as many rows.
struct ExpertShape {
  double count = 0, top_k = 0;     // experts of the layer, and of a token
  double here = 0, rows = 0;       // experts of this rank, and rows that they all get together
  double routed = 0;               // tokens that this rank routes
  double ffn = 0, shared_ffn = 0;  // widths on this rank; shared_ffn: of all shared experts, or 0
};

struct ExpertKernels {
  KernelTimes router;   // before rows travel to the experts
  KernelTimes experts;  // of this rank
  KernelTimes combine;  // when they are back
  KernelTimes shared1, shared2;
};

// As Megatron-core's all-to-all dispatcher and grouped products launch them, without the fusion of
// permutations.
ExpertKernels expert_kernels(const KernelModel& device, const LayerShape& shape,
                             const ExpertShape& experts);

// `vocabulary`: the part of this rank.
KernelTimes head_kernels(const KernelModel& device, const LayerShape& shape,
                         std::uint64_t vocabulary);

}  // namespace ghostrank
