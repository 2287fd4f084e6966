// Multi-head latent attention (DeepSeek's MLA) as in Megatron-core: every tensor-parallel rank
// computes the whole down projections to the latents for its part of the sequence, then
// column-parallel up projections to heads, each after an all-gather of its latent.
//
//   forward    compute |down |    |q_up|    |kv_up core proj|    |
//              tp           |- AG -|   |- AG -|             |- RS -|
//
// The keys' rotary part comes with the latents, but has an all-gather of its own.
#include "profiles/planners/megatron/passes.h"

namespace ghostrank {

void PassWriter::latent_forward(std::uint32_t label) {
  const LatentAttention& latent = plan_.model.latent;
  const Half rest{label, {}, times_.core, times_.projection};
  compute(label, forward_of(times_.down));
  gather(plan_.tokens * latent.rope);
  gather_operand(plan_.tokens * latent_queries());
  compute(label, forward_of(times_.q_up));
  gather_operand(plan_.tokens * latent.kv_lora);
  compute(label, forward_of(times_.kv_up));
  core_forward(rest);
  compute(label, forward_of(rest.row));
  reduce_hidden();
}

void PassWriter::latent_backward(std::uint32_t label) {
  const LatentAttention& latent = plan_.model.latent;
  row_and_core_backward({label, {}, times_.core, times_.projection});
  linear_backward(label, times_.kv_up, plan_.tokens * latent.kv_lora);
  linear_backward(label, times_.q_up, plan_.tokens * latent_queries());
  if (inputs() && plan_.sequence_parallel) {
    launch_tp(Func::reduce_scatter, scatter_label_, plan_.tokens * latent.rope);
    out_.after(streams_.compute, streams_.tp);
  }
  compute(label, backward_of(times_.down));
  linear_backward_ended(latent.q_lora > 0 ? 2 : 1);
}

// Input width of the product up to the queries.
std::uint64_t PassWriter::latent_queries() const {
  const std::uint64_t latent = plan_.model.latent.q_lora;
  return latent > 0 ? latent : plan_.model.hidden;
}

}  // namespace ghostrank
