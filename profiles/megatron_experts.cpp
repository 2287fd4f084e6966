// A layer's experts in place of its feed-forward part, as Megatron's all-to-all dispatcher serves
// them: counts are gathered first, then rows and their probabilities go to the experts and rows
// come back. Every rank routes the same number of rows to every other.
#include "profiles/megatron_passes.h"

namespace ghostrank {

void PassWriter::route(Func func, std::uint16_t group, DataType type, std::uint64_t count) {
  if (group == kNoGroup) return;
  out_.after(streams_.ep, streams_.compute);
  out_.collective(streams_.ep, rows_label_, func, group, type, count);
  out_.after(streams_.compute, streams_.ep);
}

void PassWriter::experts_forward(std::uint32_t label) {
  const std::uint64_t rows = plan_.routed_rows(), h = plan_.model.hidden;
  const auto ep = static_cast<std::uint64_t>(plan_.ep);
  out_.compute(streams_.compute, label, times_.router);
  route(Func::all_gather, groups_.tp_ep, DataType::int64, plan_.model.experts.count);
  route(Func::all_to_all, groups_.ep, plan_.activations, rows / ep * h);
  route(Func::all_to_all, groups_.ep, DataType::float32, rows / ep);
  route(Func::all_gather, groups_.etp, plan_.activations, rows * h);
  route(Func::all_gather, groups_.etp, DataType::float32, rows);
  out_.compute(streams_.compute, label, times_.expert1 + times_.expert2);
  route(Func::reduce_scatter, groups_.etp, plan_.activations, rows * h);
  route(Func::all_to_all, groups_.ep, plan_.activations, rows / ep * h);
  if (plan_.model.experts.shared > 0)
    half_forward(feed_forward(label, times_.shared1, times_.shared2));
}

void PassWriter::experts_backward(std::uint32_t label) {
  const std::uint64_t rows = plan_.routed_rows(), h = plan_.model.hidden;
  const auto ep = static_cast<std::uint64_t>(plan_.ep);
  const Picoseconds products = times_.expert1 + times_.expert2;
  if (plan_.model.experts.shared > 0)
    half_backward(feed_forward(label, times_.shared1, times_.shared2));
  if (inputs()) {
    route(Func::all_to_all, groups_.ep, plan_.activations, rows / ep * h);
    route(Func::all_gather, groups_.etp, plan_.activations, rows * h);
  }
  out_.compute(streams_.compute, label, (inputs() + weights()) * products);
  if (inputs()) {
    route(Func::reduce_scatter, groups_.etp, DataType::float32, rows);
    route(Func::reduce_scatter, groups_.etp, plan_.activations, rows * h);
    route(Func::all_to_all, groups_.ep, DataType::float32, rows / ep);
    route(Func::all_to_all, groups_.ep, plan_.activations, rows / ep * h);
  }
  out_.compute(streams_.compute, label, (inputs() + weights()) * times_.router);
}

}  // namespace ghostrank
