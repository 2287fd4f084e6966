// A layer's experts in place of its feed-forward part, as Megatron's all-to-all dispatcher serves
// them: counts are gathered first, then rows and their probabilities go to the experts and rows
// come back. Either every rank routes the same number of rows to every other, or the layer has a
// routing of its own (megatron_routing.h).
#include "profiles/megatron_passes.h"

namespace ghostrank {

void PassWriter::route(Func func, std::uint16_t group, DataType type, std::uint64_t count) {
  if (group == kNoGroup || count == 0) return;
  out_.after(streams_.ep, streams_.compute);
  out_.collective(streams_.ep, rows_label_, func, group, type, count);
  out_.after(streams_.compute, streams_.ep);
}

// Rows of `width` elements to their experts, or back to where they came from.
void PassWriter::exchange(const Routing* routing, DataType type, std::uint64_t width, bool back) {
  if (!routing) {
    const std::uint64_t rows = plan_.routed_rows() / static_cast<std::uint64_t>(plan_.ep);
    return route(Func::all_to_all, groups_.ep, type, rows * width);
  }
  if (groups_.ep == kNoGroup) return;
  const bool whole = width > 1;
  const std::uint32_t list = back ? (whole ? routing->back : routing->weights_back)
                                  : (whole ? routing->there : routing->weights_there);
  out_.after(streams_.ep, streams_.compute);
  out_.ragged(streams_.ep, rows_label_, Func::all_to_all_v, groups_.ep, type, list);
  out_.after(streams_.compute, streams_.ep);
}

const Routing* PassWriter::routing_of(int layer) const {
  return routing_.empty() ? nullptr : &routing_[static_cast<std::size_t>(layer)];
}

// That this rank's experts work on.
std::uint64_t PassWriter::arriving_rows(const Routing* routing) const {
  if (!routing) return plan_.routed_rows();
  return routing->rows[static_cast<std::size_t>(ep_rank_)] * static_cast<std::uint64_t>(plan_.ep);
}

Picoseconds PassWriter::experts_time(const Routing* routing) const {
  const Picoseconds even = times_.expert1 + times_.expert2;
  if (!routing) return even;
  return static_cast<Picoseconds>(static_cast<double>(even) *
                                  static_cast<double>(arriving_rows(routing)) /
                                  static_cast<double>(plan_.routed_rows()));
}

void PassWriter::experts_forward(std::uint32_t label, int layer) {
  const Routing* routing = routing_of(layer);
  const std::uint64_t rows = arriving_rows(routing), h = plan_.model.hidden;
  out_.compute(streams_.compute, label, times_.router);
  route(Func::all_gather, groups_.tp_ep, DataType::int64, plan_.model.experts.count);
  exchange(routing, plan_.activations, h, false);
  exchange(routing, DataType::float32, 1, false);
  route(Func::all_gather, groups_.etp, plan_.activations, rows * h);
  route(Func::all_gather, groups_.etp, DataType::float32, rows);
  out_.compute(streams_.compute, label, experts_time(routing));
  route(Func::reduce_scatter, groups_.etp, plan_.activations, rows * h);
  exchange(routing, plan_.activations, h, true);
  if (plan_.model.experts.shared > 0)
    half_forward(feed_forward(label, times_.shared1, times_.shared2));
}

void PassWriter::experts_backward(std::uint32_t label, int layer) {
  const Routing* routing = routing_of(layer);
  const std::uint64_t rows = arriving_rows(routing), h = plan_.model.hidden;
  if (plan_.model.experts.shared > 0)
    half_backward(feed_forward(label, times_.shared1, times_.shared2));
  if (inputs()) {
    exchange(routing, plan_.activations, h, false);
    route(Func::all_gather, groups_.etp, plan_.activations, rows * h);
  }
  out_.compute(streams_.compute, label, (inputs() + weights()) * experts_time(routing));
  if (inputs()) {
    route(Func::reduce_scatter, groups_.etp, DataType::float32, rows);
    route(Func::reduce_scatter, groups_.etp, plan_.activations, rows * h);
    exchange(routing, DataType::float32, 1, true);
    exchange(routing, plan_.activations, h, true);
  }
  out_.compute(streams_.compute, label, (inputs() + weights()) * times_.router);
}

}  // namespace ghostrank
