// A layer's experts instead of its feed-forward layer, after Megatron's all-to-all dispatcher:
// ranks first gather the counts, then rows and their probabilities go to the experts, and rows come
// back. Either every rank routes the same number of rows to every other, or the layer has a routing
// of its own (megatron/routing.h).
//
// Deduplicated dispatch, after DeepEP: a token's row goes once to every node with experts of the
// token, to the rank at the sender's own position there (a rail), and from that rank once to every
// rank with experts of the token; back the same way. The two steps follow each other, where
// DeepEP's kernels overlap them. The number of counts that ranks exchange first is an assumption,
// not taken from its source.
#include "profiles/planners/megatron/passes.h"

namespace ghostrank {

void PassWriter::route(Func func, std::uint16_t group, DataType type, std::uint64_t count) {
  if (group == kNoGroup || count == 0) return;
  out_.after(streams_.ep, streams_.compute);
  out_.collective(streams_.ep, rows_label_, func, group, type, count);
  out_.after(streams_.compute, streams_.ep);
}

// By the counts of `list`, or without a list `even` elements to each member.
void PassWriter::move_rows(std::uint16_t group, DataType type, const std::uint32_t* list,
                           std::uint64_t even) {
  if (!list) return route(Func::all_to_all, group, type, even);
  if (group == kNoGroup) return;
  out_.after(streams_.ep, streams_.compute);
  out_.ragged(streams_.ep, rows_label_, Func::all_to_all_v, group, type, *list);
  out_.after(streams_.compute, streams_.ep);
}

void PassWriter::exchange(const ExpertRouting* routing, Cargo cargo, bool back) {
  if (plan_.spec->parallel.deduplicated && plan_.ep > 1) return exchange_once(routing, cargo, back);
  const bool hidden = cargo == Cargo::hidden;
  const std::uint64_t rows = plan_.routed_rows() / plan_.ep;
  const Lists* lists = !routing ? nullptr : hidden ? &routing->rows_lists : &routing->weights_lists;
  move_rows(groups_.ep, hidden ? plan_.activations : DataType::float32,
            lists ? &lists->list(back) : nullptr, rows * (hidden ? plan_.model.hidden : 1));
}

// A row goes along rails to every node with experts of its token, and from there to the node's
// ranks. It carries the weights of all experts of its token.
void PassWriter::exchange_once(const ExpertRouting* routing, Cargo cargo, bool back) {
  const bool hidden = cargo == Cargo::hidden;
  const DataType type = hidden ? plan_.activations : DataType::float32;
  const std::uint64_t width = hidden ? plan_.model.hidden : plan_.model.experts.top_k;
  const std::size_t node = ep_rank_ / (plan_.ep / groups_.ep_nodes);
  const auto along_rail = [&] {
    const Lists* lists = !routing ? nullptr : hidden ? &routing->rail : &routing->rail_weights;
    move_rows(groups_.ep_rail, type, lists ? &lists->list(back) : nullptr,
              rows_to_each(plan_, groups_.ep_nodes) * width);
  };
  const auto inside_node = [&] {
    const auto* lists = !routing ? nullptr : hidden ? &routing->node : &routing->node_weights;
    move_rows(groups_.ep_node, type, lists ? &(*lists)[node].list(back) : nullptr,
              rows_to_each(plan_, plan_.ep) * groups_.ep_nodes * width);
  };
  back ? inside_node() : along_rail();
  back ? along_rail() : inside_node();
}

const ExpertRouting* PassWriter::routing_of(int layer) const {
  return routing_.empty() ? nullptr : &routing_[layer];
}

// Rows that this rank's experts process.
std::uint64_t PassWriter::arriving_rows(const ExpertRouting* routing) const {
  if (!routing) return plan_.routed_rows();
  return routing->rows[ep_rank_] * plan_.ep;
}

// The experts' time, if it is `even` for equally many rows. Their kernels are as many.
GpuWork PassWriter::of_rows(const GpuWork& even, const ExpertRouting* routing) const {
  if (!routing) return even;
  return {static_cast<Picoseconds>(static_cast<double>(even.time) *
                                   static_cast<double>(arriving_rows(routing)) /
                                   static_cast<double>(plan_.routed_rows())),
          even.launching};
}

void PassWriter::experts_forward(std::uint32_t label, int layer) {
  const ExpertRouting* routing = routing_of(layer);
  const std::uint64_t rows = arriving_rows(routing), h = plan_.model.hidden;
  compute(label, times_.router.forward);
  if (plan_.spec->parallel.deduplicated)
    route(Func::all_to_all, groups_.ep, DataType::int32, plan_.experts_here() + 1);
  else
    route(Func::all_gather, groups_.tp_ep, DataType::int64, plan_.model.experts.count);
  exchange(routing, Cargo::hidden, false);
  exchange(routing, Cargo::weights, false);
  route(Func::all_gather, groups_.etp, plan_.activations, rows * h);
  route(Func::all_gather, groups_.etp, DataType::float32, rows);
  const GpuWork products = of_rows(times_.experts.forward, routing);
  compute(label, casts_ ? times_.experts.cast + products : products);
  route(Func::reduce_scatter, groups_.etp, plan_.activations, rows * h);
  exchange(routing, Cargo::hidden, true);
  if (times_.combine.forward.time > 0) compute(label, times_.combine.forward);
  if (plan_.model.experts.shared > 0)
    half_forward(feed_forward(label, times_.shared1, times_.shared2));
}

void PassWriter::experts_backward(std::uint32_t label, int layer) {
  const ExpertRouting* routing = routing_of(layer);
  const std::uint64_t rows = arriving_rows(routing), h = plan_.model.hidden;
  if (plan_.model.experts.shared > 0)
    half_backward(feed_forward(label, times_.shared1, times_.shared2));
  if (inputs()) {
    if (times_.combine.input.time > 0) compute(label, times_.combine.input);
    exchange(routing, Cargo::hidden, false);
    route(Func::all_gather, groups_.etp, plan_.activations, rows * h);
  }
  compute(label, (inputs() ? of_rows(times_.experts.input, routing) : GpuWork{}) +
                     (weights() ? of_rows(times_.experts.weight, routing) : GpuWork{}));
  linear_backward_ended();
  if (inputs()) {
    route(Func::reduce_scatter, groups_.etp, DataType::float32, rows);
    route(Func::reduce_scatter, groups_.etp, plan_.activations, rows * h);
    exchange(routing, Cargo::weights, true);
    exchange(routing, Cargo::hidden, true);
  }
  compute(label, (inputs() ? times_.router.input : GpuWork{}) +
                     (weights() ? times_.router.weight : GpuWork{}));
}

}  // namespace ghostrank
