// Linear layers in fp8, as Transformer Engine computes them for Megatron-core (--fp8-format): their
// products alone. Weights, gradients, hidden states between layers, attention's core, router,
// embedding and head keep their types, and optimizers know nothing of it.
//
//   traffic   what sequence parallelism gathers for a product is fp8, also backward, a byte an
//             element; reduce-scatters are not, nor are pipelines, experts' rows and data
//             parallelism
//   delayed   after every forward and every backward of a part one all-reduce of the largest
//             elements of all tensors that the rank has scaled so far, of every part: three for
//             each product (input, weight, output), two backward, as many for attention's core as
//             for three products. A layer that is computed again reduces them once more, and each
//             of its linear layers backward, but the second of the experts
//   tensorwise  the largest element of a tensor before its gather, among the ranks that gather it
//
// Derived from transformer_engine/pytorch (quantization.py, distributed.py, module) and
// megatron/core (fp8_utils.py, transformer_block.py), not traced. All experts of a rank are one
// layer to the hidden width and one back, whose products count one by one. Not played: padding of
// experts' rows, weights stored in fp8 (--fp8-param-gather), attention in fp8, and the kernels that
// turn maxima into scales. Threading: pure functions.
#pragma once

#include <cstdint>

namespace ghostrank {

struct MegatronPlan;

// Elements of an all-reduce of maxima.
struct Fp8Maxima {
  std::uint64_t forward = 0, backward = 0;
};
// Of a rank of this stage; 0: it has no linear layers, or keeps no maxima.
Fp8Maxima megatron_maxima(const MegatronPlan& plan, int stage);

}  // namespace ghostrank
