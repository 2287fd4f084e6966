// NCCL's ring: every rank sends to the next rank of its channel's ring and receives from the
// previous one, chunk by chunk. Position i of n performs, in the primitives of NCCL (runRing in
// nccl/src/device/all_reduce.h and its siblings):
//
// clang-format off
//   all-reduce; a loop is n chunks
//     step        0      1 .. n-2         n-1                  n .. 2n-3      2n-2
//     primitive   send   recvReduceSend   recvReduceCopySend   recvCopySend   recv
//     chunk       i-1    i-2 .. i+1       i                    i-1 .. i+2     i+1
//
//   reduce-scatter; a loop is one chunk of every block, chunk j belongs to the rank at position j
//     step        0      1 .. n-2         n-1
//     primitive   send   recvReduceSend   recvReduceCopy
//     chunk       i-1    i-2 .. i+1       i
//
//   all-gather; likewise
//     step        0      1 .. n-2         n-1
//     primitive   send   recvCopySend     recv
//     chunk       i      i-1 .. i+2       i+1
//
//   broadcast   the root: send; the position before it: recv; others: recvCopySend
//   reduce      the position after the root: send; the root: recvReduceCopy; others: recvReduceSend
// clang-format on
//
// Cost: per loop and rank, an all-reduce sends 2(n-1) messages, reduce-scatter and all-gather n-1,
// times the slices of a chunk; the last slice of a small chunk is an empty message.
#include <algorithm>
#include <utility>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"

namespace ghostrank {
namespace {

class NcclRingSchedule final : public Schedule {
 public:
  NcclRingSchedule(const Collective& c, NcclPlan plan)
      : Schedule(c, plan.flow_control(), plan.task.protocol),
        plan_(std::move(plan)),
        parts_(nccl_channel_parts(plan_)) {
    for (const NcclChannelPart& part : parts_)
      rings_.emplace_back(plan_.nodes, *plan_.node, part.channel);
    set_played(plan_.name());
  }

  int actors(GroupRank) const override { return static_cast<int>(parts_.size()); }
  Actor actor(GroupRank, int a) const override {
    const NcclChannelPart& part = parts_[a];
    const std::uint64_t loop = chunks_per_loop() * part.chunk;
    const std::uint64_t loops = (part.count + loop - 1) / loop;
    return {part.channel, static_cast<int>(loops) * steps_per_loop(), steps_per_loop()};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank, int channel, GroupRank) const override {
    return channel - plan_.split.first;
  }
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    return nccl_nic_of_ring(plan_, from, to, channel, way);
  }
  int nics() const override { return plan_.node->nics; }

 private:
  std::uint64_t chunks_per_loop() const {
    return collective().func == Func::all_reduce ? static_cast<std::uint64_t>(collective().size)
                                                 : 1;
  }
  int steps_per_loop() const {
    const Collective& c = collective();
    if (c.func == Func::all_reduce) return 2 * c.size - 1;
    return c.func == Func::broadcast || c.func == Func::reduce ? 1 : c.size;
  }
  Block chunk_of(const NcclChannelPart& part, std::uint64_t loop, int chunk) const;

  NcclPlan plan_;
  std::vector<NcclChannelPart> parts_;
  std::vector<NcclRing> rings_;  // by part
};

// What step p of a loop does. `chunk`: the number of an all-reduce's chunk; for all-gather and
// reduce-scatter the position of the rank that owns the block.
struct Primitive {
  int chunk = 0;
  bool receives = true, sends = true;
  Combine combine = Combine::copy;
};

Primitive primitive(Func func, int size, int position, int root, int p) {
  Primitive does;
  const int last_reduction = func == Func::all_gather ? 0 : size - 1;
  switch (func) {
    case Func::all_reduce:
    case Func::reduce_scatter:
      does.chunk = position - 1 - p;
      does.sends = p < (func == Func::all_reduce ? 2 * size - 2 : size - 1);
      break;
    case Func::all_gather:
      does.chunk = position - p;
      does.sends = p < size - 1;
      break;
    case Func::broadcast:
      does.receives = position != root;
      does.sends = (position + 1) % size != root;
      return does;
    default:
      does.combine = Combine::reduce;
      does.receives = position != (root + 1) % size;
      does.sends = position != root;
      return does;
  }
  does.receives = p > 0;
  does.combine = p <= last_reduction ? Combine::reduce : Combine::copy;
  while (does.chunk < 0) does.chunk += size;
  return does;
}

// The elements of a chunk; the last loop of an all-reduce splits the remaining elements evenly.
Block NcclRingSchedule::chunk_of(const NcclChannelPart& part, std::uint64_t loop, int chunk) const {
  const Collective& c = collective();
  const std::uint64_t i = chunk;
  const std::uint64_t begin = loop * chunks_per_loop() * part.chunk, rest = part.count - begin;
  if (c.func != Func::all_reduce) return {begin, std::min(part.chunk, rest), Buffer::work};
  const std::uint64_t n = c.size;
  std::uint64_t length = part.chunk;
  if (rest < n * length) {
    const std::uint64_t line = 16 / c.element_bytes;
    length = ((rest + n - 1) / n + line - 1) / line * line;
  }
  const std::uint64_t from = std::min(rest, i * length);
  return {begin + from, std::min(length, rest - from), Buffer::work};
}

Step NcclRingSchedule::step(GroupRank r, int a, int k) const {
  const Collective& c = collective();
  const NcclChannelPart& part = parts_[a];
  const NcclRing& ring = rings_[a];
  const int position = ring.position_of(r), per_loop = steps_per_loop();
  const bool rooted = c.func == Func::broadcast || c.func == Func::reduce;
  const Primitive does =
      primitive(c.func, c.size, position, rooted ? ring.position_of(c.root) : 0, k % per_loop);

  Block block = chunk_of(part, static_cast<std::uint64_t>(k / per_loop), does.chunk);
  block.offset += part.offset;
  if (c.func == Func::all_gather || c.func == Func::reduce_scatter)
    block.offset += ring.rank_at(does.chunk) * c.count;

  Step step;
  const NcclSlices slices = plan_.slices(block.count);
  step.slices = slices.count;
  step.slice_elements = slices.elements;
  if (does.receives) {
    step.recv_from = ring.rank_at(position == 0 ? c.size - 1 : position - 1);
    step.recv = block;
    step.on_recv = does.combine;
  }
  if (does.sends) {
    step.send_to = ring.rank_at(position + 1 == c.size ? 0 : position + 1);
    step.send = block;
  }
  return step;
}

}  // namespace

int nccl_nic_of_ring(const NcclPlan& plan, GroupRank from, GroupRank to, int channel, Way way) {
  const GroupRank r = way == Way::send ? from : to;
  const NcclNodes& nodes = plan.nodes;
  const int node = nodes.node_of(r);
  const int nic = nccl_ring_nic(*plan.node, channel, nodes.local_of(r), nodes.ranks_of(node));
  return is_nic_beside(nic) ? Schedule::nic_of(nodes.rank_at(node, local_beside(nic))) : nic;
}

std::unique_ptr<Schedule> nccl_ring(const Collective& c, NcclPlan plan) {
  return std::make_unique<NcclRingSchedule>(c, std::move(plan));
}

}  // namespace ghostrank
