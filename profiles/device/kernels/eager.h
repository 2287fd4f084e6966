// The kernels that PyTorch launches for a dense transformer layer written in plain modules, for the
// embedding and for the head with its loss: what tests/fidelity/layers/measure.py trains, and what
// its kernel tables show.
//
//   attention  norm | product(s) to queries, keys and values | rotary | fused core | product | add
//   ffn        norm | product(s) | activation                                      | product | add
//
// Biases are part of the products. Norm, activation, dropout and addition are kernels of their own,
// and backward so is every sum of gradients that meet: after products that share their input, and
// at each residual. A gradient's first value becomes the parameter's gradient as it is. Compiled
// layers fuse what lies between two products.
//
// Weights are stored in the type of the products, or in a larger one (autocast): then hidden states
// between the products, norms and sums are in that type, too, every product casts its input and its
// weight, and their gradients are cast back.
//
// Threading: pure functions.
#pragma once

#include <cstdint>

#include "profiles/device/kernels/kernels.h"
#include "profiles/device/kernels/of_layer.h"

namespace ghostrank {

struct EagerShape {
  LayerShape layer;
  double stored = 2;  // bytes of an element of weights, of their gradients and of hidden states
  bool merged_qkv = false;  // one product gives queries, keys and values, as in GPT-2; else three
  bool compiled = false;
};

KernelTimes eager_layer(const KernelModel& device, const EagerShape& shape);

// `positions`: rows of the learned position embedding; 0: none.
KernelTimes eager_embedding(const KernelModel& device, const EagerShape& shape,
                            std::uint64_t vocabulary, std::uint64_t positions);

KernelTimes eager_head(const KernelModel& device, const EagerShape& shape,
                       std::uint64_t vocabulary);

struct EagerOptimizer {
  double parameters = 0, stored = 4;  // their number, bytes of each and of its moments
  bool adam = true;                   // else SGD with momentum
  bool foreach = false;               // a kernel for each operation; else one for all
  bool clips = false;                 // gradients by their norm
};

Kernels eager_optimizer(const KernelModel& device, const EagerOptimizer& step);

}  // namespace ghostrank
