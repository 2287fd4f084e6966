// Multi-token prediction (DeepSeek-V3) as Megatron-core has it: behind the last layer a chain of
// modules, each with an embedding of the tokens one further on, a product of it and the hidden
// states before, both normed, down to their width, and a layer like the last one. Every module's
// hidden states go to the head for a loss of their own.
//
//   forward    compute |      |    |proj|    | a layer
//              tp      |- RS -|- AG -|  |- AG -|
//
// The second gathering is along the width: the product is column-parallel and its output whole.
// The embedding is that of the model; where it is on another stage the module has a copy, whose
// gradients are summed with the first one's once per step. Derived from
// megatron/core/transformer/multi_token_prediction.py.
#include "profiles/planners/megatron/passes.h"

namespace ghostrank {

void PassWriter::mtp_project(std::uint32_t label) {
  gather(2 * plan_.hidden_states());
  out_.compute(streams_.compute, label, times_.mtp);
  if (plan_.tp == 1) return;
  launch_tp(Func::all_gather, gather_label_, plan_.hidden_states());
  out_.after(streams_.compute, streams_.tp);
}

void PassWriter::mtp_forward(int layer) {
  embedding_forward();
  mtp_project(labels_.mtp);
  layer_forward(layer);
}

void PassWriter::mtp_backward(int layer) {
  if (inputs() && plan_.spec->parallel.recompute == Recompute::full) mtp_project(labels_.again);
  layer_backward(layer);
  if (inputs()) gather(plan_.hidden_states());  // of the gradient of its part of the sequence
  column_backward(labels_.mtp, times_.mtp, 2 * plan_.hidden_states());
  embedding_backward();
}

// How often the module is right: the largest logit of every part of the vocabulary, and where.
void PassWriter::mtp_accuracy() {
  if (plan_.tp == 1) return;
  exposed_tp(Func::all_gather, best_label_, plan_.activations, plan_.tokens);
  exposed_tp(Func::all_gather, best_label_, DataType::int64, plan_.tokens);
}

}  // namespace ghostrank
