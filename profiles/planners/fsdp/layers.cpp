#include "profiles/planners/fsdp/layers.h"

#include "profiles/model/model.h"
#include "profiles/planners/shared/two_streams.h"

namespace ghostrank {
namespace {

Picoseconds part(Picoseconds time, double share) {
  return static_cast<Picoseconds>(static_cast<double>(time) * share);
}

}  // namespace

FsdpLayers::FsdpLayers(const JobSpec& spec, const FsdpMesh& mesh, const StepTimes& times,
                       ProgramBuilder& out, const Streams& streams)
    : spec_(spec), mesh_(mesh), model_(*spec.model), times_(times), out_(out), streams_(streams) {
  if (model_.transformer)
    tokens_ = spec.parallel.micro_batch * model_.transformer->sequence / mesh.cp;
}

bool FsdpLayers::has_experts(std::size_t layer) const {
  return is_block(layer) && model_.transformer && model_.transformer->has_experts(layer - 1);
}

FsdpLayers::Shares FsdpLayers::shares(std::size_t layer) const {
  const Transformer& model = *model_.transformer;
  const double matrices = model.gated ? 3 : 2;
  const double one = 2 * static_cast<double>(model.sequence) * matrices *
                     static_cast<double>(model.hidden * model.experts.ffn) /
                     model_.layers[layer].forward_flops;
  const double routed = one * static_cast<double>(model.experts.top_k),
               shared = one * static_cast<double>(model.experts.shared);
  return {1 - routed - shared, routed, shared};
}

// A call on the hidden states of all tokens; each rank gives or keeps its part of the sequence.
void FsdpLayers::tensor_call(Func func) {
  if (mesh_.tp == 1) return;
  out_.after(streams_.tp, kCompute);
  out_.collective(streams_.tp, func == Func::all_gather ? "tp all-gather" : "tp reduce-scatter",
                  func, mesh_.tensor_group, spec_.precision.parameters,
                  tokens_ * model_.transformer->hidden / mesh_.tp);
  out_.after(kCompute, streams_.tp);
}

void FsdpLayers::exchange(const char* label, DataType type, std::uint64_t count) {
  out_.after(streams_.ep, kCompute);
  out_.collective(streams_.ep, label, Func::all_to_all, mesh_.expert_group, type, count);
  out_.after(kCompute, streams_.ep);
}

// Forward, the embedding gathers nothing and the head scatters nothing; backward, the reverse.
void FsdpLayers::half(std::size_t layer, const std::string& label, Picoseconds time,
                      Picoseconds core_time, const Traversal& how) {
  const bool gathers = !(how.forward ? is_first(layer) : is_last(layer)),
             scatters = !(how.forward ? is_last(layer) : is_first(layer));
  if (how.gathers && gathers) tensor_call(Func::all_gather);
  if (mesh_.cp > 1 && core_time > 0 && how.others) {
    const Picoseconds before = (time - core_time) / 2;
    out_.compute(kCompute, label, before);
    core(label, core_time, how.forward);
    out_.compute(kCompute, label, time - core_time - before);
  } else {
    out_.compute(kCompute, label, time);
  }
  if (how.others && scatters) tensor_call(Func::reduce_scatter);
}

void FsdpLayers::routed_experts(const std::string& label, Picoseconds time, const Traversal& how) {
  const Transformer& model = *model_.transformer;
  const std::uint64_t ep = mesh_.ep, tp = mesh_.tp;
  const std::uint64_t rows = tokens_ / tp * model.experts.top_k / ep;
  const auto move = [&] {
    exchange("rows of experts", spec_.precision.parameters, rows * model.hidden);
  };
  if (how.forward && how.others)
    exchange("rows per expert", DataType::int64, model.experts.count / ep);
  if (how.others) move();
  out_.compute(kCompute, label, time);
  if (how.others) move();
}

// Forward: attention, then the feed-forward layer, or the routed experts and then the shared ones.
// Backward in reverse.
void FsdpLayers::pass(std::size_t layer, Picoseconds time, const Traversal& how) {
  const std::string label = how.label + model_.layers[layer].name;
  const Picoseconds here = time / mesh_.tp / mesh_.cp;
  const Picoseconds core = mesh_.cp > 1 && is_block(layer) ? part(here, core_share(layer)) : 0;
  if (!routes(layer)) {
    if ((mesh_.tp == 1 && mesh_.cp == 1) || !is_block(layer))
      return half(layer, label, here, 0, how);
    const Picoseconds feed_forward = (here - core) / 2, attention = here - feed_forward;
    how.forward ? half(layer, label, attention, core, how)
                : half(layer, label, feed_forward, 0, how);
    return how.forward ? half(layer, label, feed_forward, 0, how)
                       : half(layer, label, attention, core, how);
  }
  const Shares share = shares(layer);
  const auto rest = [&] { half(layer, label, part(here, share.rest), core, how); };
  const auto shared = [&] {
    if (share.shared > 0) half(layer, label, part(here, share.shared), 0, how);
  };
  how.forward ? rest() : shared();
  routed_experts(label + " experts", part(here, share.routed), how);
  how.forward ? shared() : rest();
}

// Three values per token: the largest logit, the target's logit, the sum of exponentials.
void FsdpLayers::parallel_loss() {
  if (mesh_.tp == 1) return;
  out_.after(streams_.tp, kCompute);
  for (const Reduction reduction : {Reduction::max, Reduction::sum, Reduction::sum})
    out_.collective(streams_.tp, "loss of the vocabulary", Func::all_reduce, mesh_.tensor_group,
                    DataType::float32, tokens_, 0, 0, reduction);
  out_.after(kCompute, streams_.tp);
}

void FsdpLayers::forward(std::size_t layer) {
  pass(layer, times_.layers[layer].forward, {"forward ", true, true, true});
  if (is_last(layer)) parallel_loss();
}

void FsdpLayers::play_again(std::size_t layer) {
  if (!is_block(layer) || spec_.parallel.recompute == Recompute::none) return;
  const Picoseconds whole = times_.layers[layer].forward;
  if (spec_.parallel.recompute == Recompute::full)
    pass(layer, whole, {"again ", true, true, true});
  else
    pass(layer, whole / 2, {"again ", true, true, false});
}

// Each pass of a backward in two passes takes half of its time.
void FsdpLayers::backward(std::size_t layer, Pass which) {
  const Picoseconds whole = times_.layers[layer].backward;
  if (which == Pass::weight_backward)
    return pass(layer, whole / 2, {"backward ", false, false, false});
  play_again(layer);
  pass(layer, which == Pass::backward ? whole : whole / 2, {"backward ", false, true, true});
}

}  // namespace ghostrank
