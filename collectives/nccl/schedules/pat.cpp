// NCCL's PAT as a schedule: one actor per channel, which plays the pattern of nccl/schedules/pat.h
// chunk by chunk. It requires one rank per node.
//
// Messages: ceil(log2 n) per chunk with little data, n-1 with much. Bytes: n(n-1) S by all ranks
// together, plus the holes of a reduce-scatter if n is no power of two.
#include "collectives/nccl/schedules/pat.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"

namespace ghostrank {
namespace {

class NcclPat final : public Schedule {
 public:
  NcclPat(const Collective& c, NcclPlan plan)
      : Schedule(c, plan.flow_control()),
        plan_(std::move(plan)),
        parts_(nccl_channel_parts(plan_)) {
    for (const NcclChannelPart& part : parts_) {
      const bool same = !pattern_of_.empty() && part.count == parts_[pattern_of_.size() - 1].count;
      if (!same)
        patterns_.push_back(nccl_pat_pattern(c.func, c.size, part.count * c.element_bytes,
                                             part.chunk * c.element_bytes));
      pattern_of_.push_back(patterns_.size() - 1);
    }
    set_played(plan_.name());
  }

  int actors(GroupRank) const override { return static_cast<int>(parts_.size()); }
  Actor actor(GroupRank, int a) const override {
    const NcclChannelPart& part = parts_[a];
    const std::uint64_t chunks = (part.count + part.chunk - 1) / part.chunk;
    const std::size_t steps = pattern(a).steps.size();
    return {part.channel, static_cast<int>(chunks * steps), static_cast<int>(steps)};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank, int channel, GroupRank) const override {
    return channel - plan_.split.first;
  }
  void pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const override;
  // NCCL connects PAT's peers by the tree's graph.
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    const GroupRank r = way == Way::send ? from : to;
    const int nic = nccl_tree_nic(*plan_.node, channel, 0, 1);
    return is_nic_beside(nic) ? nic_of(r) : nic;
  }
  int nics() const override { return plan_.node->nics; }

 private:
  const NcclPatPattern& pattern(int a) const { return patterns_[pattern_of_[a]]; }
  // The pattern's step that step k plays, and the part of every block that it moves.
  struct Chunk {
    NcclPatPattern::Step step;
    std::uint64_t offset = 0, count = 0;
  };
  Chunk chunk_at(int a, int k) const {
    const NcclChannelPart& part = parts_[a];
    const auto& steps = pattern(a).steps;
    const std::size_t i = k / steps.size();
    const std::uint64_t begin = i * part.chunk;
    return {steps[k - i * steps.size()], part.offset + begin,
            std::min(part.chunk, part.count - begin)};
  }
  bool gathers() const { return collective().func == Func::all_gather; }

  NcclPlan plan_;
  std::vector<NcclChannelPart> parts_;
  std::vector<NcclPatPattern> patterns_;
  std::vector<std::size_t> pattern_of_;  // by part
};

Step NcclPat::step(GroupRank r, int a, int k) const {
  const int n = collective().size;
  const Chunk chunk = chunk_at(a, k);
  Step step;
  step.scattered = true;
  step.on_recv = gathers() ? Combine::copy : Combine::reduce;
  const auto message = [&](int m) -> const NcclPatPattern::Message& {
    return pattern(a).messages[m];
  };
  const auto ahead = [&](int m) { return (r + (1 << message(m).dimension)) % n; };
  const auto behind = [&](int m) { return (r - (1 << message(m).dimension) + n) % n; };
  if (chunk.step.recv >= 0) {
    const int m = chunk.step.recv;
    step.recv_from = gathers() ? ahead(m) : behind(m);
    step.recv.count = message(m).blocks.size() * chunk.count;
  }
  if (chunk.step.send >= 0) {
    const int m = chunk.step.send;
    step.send_to = gathers() ? behind(m) : ahead(m);
    step.send.count = message(m).blocks.size() * chunk.count;
  }
  return step;
}

void NcclPat::pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const {
  const Collective& c = collective();
  const Chunk chunk = chunk_at(a, k);
  const int m = way == Way::recv ? chunk.step.recv : chunk.step.send;
  out.clear();
  if (m < 0) return;
  const NcclPatPattern::Message& message = pattern(a).messages[m];
  // Blocks are numbered relative to the sender of the message.
  const int distance = 1 << message.dimension;
  const int origin = way == Way::send ? r : gathers() ? r + distance : r - distance + c.size;
  for (const int block : message.blocks) {
    if (block == NcclPatPattern::kHole) {
      out.push_back({0, chunk.count, Buffer::none});
      continue;
    }
    const std::uint64_t owner = (origin + block) % c.size;
    out.push_back({owner * c.count + chunk.offset, chunk.count, Buffer::work});
  }
}

}  // namespace

std::unique_ptr<Schedule> nccl_pat(const Collective& c, NcclPlan plan) {
  if (plan.nodes.ranks_per_node() > 1)
    throw std::invalid_argument("NCCL uses PAT only with one rank per node");
  return std::make_unique<NcclPat>(c, std::move(plan));
}

}  // namespace ghostrank
