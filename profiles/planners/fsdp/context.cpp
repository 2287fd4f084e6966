// Context parallelism in TorchTitan: the attention core over keys and values of all
// context-parallel ranks, as in torch.distributed.tensor.experimental.
//
//   all_gather   compute | own keys | all others |        gathered beside the first block
//                cp      |---AG---|
//   p2p          compute | own keys | the neighbour's | ...
//                cp      |---->-----|------>----------|
//
// Backward: keys and values travel once more, and their fp32 gradients follow them round the ring
// and return home after the last block. Blocks take equal time because of head-and-tail balancing.
#include "profiles/model/model.h"
#include "profiles/planners/fsdp/layers.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

// Width of the scores' product with a head's keys plus that with its values.
double scores_width(const Transformer& model) {
  const LatentAttention& latent = model.latent;
  return model.is_latent() ? real(latent.nope + latent.rope + latent.value)
                           : 2 * real(model.head_width);
}

}  // namespace

// The attention core's share of a layer's FLOPs.
double FsdpLayers::core_share(std::size_t layer) const {
  const Transformer& model = *model_.transformer;
  return 2 * real(model.sequence) * real(model.sequence) * real(model.heads) * scores_width(model) /
         model_.layers[layer].forward_flops;
}

// Elements of the keys and values of a rank's tokens; those of every head if they come from a
// latent.
std::uint64_t FsdpLayers::key_elements() const {
  const Transformer& model = *model_.transformer;
  const LatentAttention& latent = model.latent;
  const std::uint64_t width = model.is_latent()
                                  ? model.heads * (latent.nope + latent.rope + latent.value)
                                  : 2 * model.key_width();
  return tokens_ * width / mesh_.tp;
}

void FsdpLayers::gather_keys() {
  out_.collective(streams_.cp, "keys and values", Func::all_gather, mesh_.context_group,
                  spec_.precision.parameters, key_elements());
}

void FsdpLayers::pass_round(const char* what, DataType type) {
  const std::uint32_t label = out_.label(what);
  out_.after(streams_.cp_send, kCompute);
  out_.send(streams_.cp_send, label, mesh_.context_group, 1, type, key_elements());
  out_.recv(streams_.cp, label, mesh_.context_group, -1, type, key_elements());
}

void FsdpLayers::core(const std::string& label, Picoseconds time, bool forward) {
  constexpr const char* kGradients = "gradients of keys and values";
  const bool gathered = spec_.parallel.cp_comm == ContextComm::all_gather;
  for (int block = 0; block < mesh_.cp; ++block) {
    out_.after(streams_.cp, kCompute);
    if (gathered && block == 0) gather_keys();
    if (!gathered && block + 1 < mesh_.cp)
      pass_round("keys and values", spec_.precision.parameters);
    if (!forward && block > 0) pass_round(kGradients, DataType::float32);
    out_.compute(kCompute, label, time / mesh_.cp);
    out_.after(kCompute, streams_.cp);
    out_.after(kCompute, streams_.cp_send);
  }
  if (forward) return;
  out_.after(streams_.cp, kCompute);
  pass_round(kGradients, DataType::float32);
  out_.after(kCompute, streams_.cp);
  out_.after(kCompute, streams_.cp_send);
}

}  // namespace ghostrank
