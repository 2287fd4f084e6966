// Tensor-parallel calls in parts between the parts of a product (--tp-comm-overlap), derived from
// Transformer Engine's comm_gemm_overlap.cpp and the methods that its initialize_ub() chooses:
//
//   an all-gather before a product    a ring: each rank multiplies the part that it has while it
//   (forward: qkv, fc1; backward:     sends it on, and the next part arrives
//   proj, fc2, for the input)
//
//     compute |part 1|part 2|part 3|part 4|
//     tp      |  2   |  3   |  4   |
//
//   a product before a reduce-        columns in four parts; each is reduced while the next one is
//   scatter (forward: proj, fc2)      multiplied
//
//     compute |part 1|part 2|part 3|part 4|
//     tp             |  1   |  2   |  3   |  4   |
//
// Backward, the gather of the input and the reduce-scatter of its gradient overlap the products
// of qkv and fc1 whole, as they do without this option. The embedding and the head are not
// Transformer Engine's, and have calls of their own.
//
// A part takes its share of the product, because parts run on three streams and fill each other's
// last wave. Its calls are played as the job's library makes them: userbuffers' own kernels move as
// many bytes, straight between the ranks of a node. A ring's copies take no multiprocessors, the
// kernel that reduces takes kReduceMultiprocessors from the next part.
#include "profiles/planners/megatron/passes.h"

namespace ghostrank {
namespace {

constexpr int kSplits = 4;
constexpr double kReduceMultiprocessors = 16;

GpuWork part_of(const GpuWork& work, int parts) {
  return {work.time / parts, work.launching / parts};
}

}  // namespace

void PassWriter::gathered_product(std::uint32_t label, const GpuWork& product) {
  const std::uint64_t part = plan_.hidden_states() / plan_.tp;
  const DataType type = plan_.gathered();
  const Op::Within within = plan_.tp > 2 ? Op::Within::pair : Op::Within::group;
  agree_on_scale();
  out_.after(streams_.tp, streams_.compute);
  out_.after(streams_.tp_send, streams_.compute);
  for (int step = 0; step + 1 < plan_.tp; ++step) {
    if (step > 0) out_.after(streams_.tp_send, streams_.tp);  // sends on what came
    out_.send(streams_.tp_send, gather_label_, groups_.tp, 1, type, part, within);
    out_.recv(streams_.tp, gather_label_, groups_.tp, -1, type, part, within);
    compute(label, part_of(product, plan_.tp));
    out_.after(streams_.compute, streams_.tp);
  }
  compute(label, part_of(product, plan_.tp));
  out_.after(streams_.compute, streams_.tp_send);
}

void PassWriter::scattered_product(std::uint32_t label, const GpuWork& product) {
  const double all = plan_.spec->device.multiprocessors;
  const double slower = all > kReduceMultiprocessors ? all / (all - kReduceMultiprocessors) : 1;
  const std::uint64_t elements = plan_.hidden_states() / plan_.tp;
  for (int split = 0; split < kSplits; ++split) {
    GpuWork part = part_of(product, kSplits);
    if (split > 0) part.time = static_cast<Picoseconds>(static_cast<double>(part.time) * slower);
    compute(label, part);
    const std::uint64_t from = elements * split / kSplits, to = elements * (split + 1) / kSplits;
    launch_tp(Func::reduce_scatter, scatter_label_, (to - from) * plan_.tp);
  }
  out_.after(streams_.compute, streams_.tp);
}

void PassWriter::overlapped_forward(const Half& half) {
  await(half.first);
  gathered_product(half.label, forward_of(half.column));
  if (half.has_core()) core_forward(half);
  await(half.second);
  scattered_product(half.label, forward_of(half.row));
}

void PassWriter::overlapped_row_backward(const Half& half) {
  if (inputs()) gathered_product(half.label, half.row.input);
  if (weights()) compute(half.label, half.row.weight);
}

}  // namespace ghostrank
