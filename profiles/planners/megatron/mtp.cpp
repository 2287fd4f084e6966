// Multi-token prediction (DeepSeek-V3) as in Megatron-core: a chain of modules after the last
// layer. Each module embeds the tokens one position further on, norms this embedding and the hidden
// states before it, projects both together to the hidden width, and runs a layer like the last one.
// The head computes a loss from every module's hidden states.
//
//   forward    compute |      |    |proj|    | a layer
//              tp      |- RS -|- AG -|  |- AG -|
//
// The second all-gather is along the width, because the projection is column-parallel but its
// output must be whole. The embedding is the model's. If it is on another stage, the module has a
// copy, and the gradients of both are summed once per step. Derived from
// megatron/core/transformer/multi_token_prediction.py.
#include "profiles/planners/megatron/passes.h"

namespace ghostrank {

void PassWriter::mtp_project(std::uint32_t label) {
  gather_operand(2 * plan_.hidden_states());
  compute(label, forward_of(times_.mtp));
  if (plan_.tp == 1) return;
  launch_tp(Func::all_gather, gather_label_, plan_.hidden_states());
  out_.after(streams_.compute, streams_.tp);
}

void PassWriter::mtp_forward(int layer) {
  embedding_forward();
  mtp_project(labels_.mtp);
  if (!recomputes()) reduce_maxima(Pass::forward);  // projection and layer are recomputed as one
  layer_forward(layer);
  reduce_maxima(Pass::forward);
}

void PassWriter::mtp_backward(int layer) {
  if (inputs() && recomputes()) mtp_project(labels_.again);
  layer_backward(layer);
  layers_backward_ended();
  // The rank holds the gradient of its part of the sequence only.
  if (inputs()) gather(plan_.hidden_states());
  linear_backward(labels_.mtp, times_.mtp, 2 * plan_.hidden_states());
  layers_backward_ended();
  embedding_backward();
}

// The module's accuracy: the largest logit of every part of the vocabulary, and its index.
void PassWriter::mtp_accuracy() {
  if (plan_.tp == 1) return;
  exposed_tp(Func::all_gather, best_label_, plan_.activations, plan_.tokens);
  exposed_tp(Func::all_gather, best_label_, DataType::int64, plan_.tokens);
}

}  // namespace ghostrank
