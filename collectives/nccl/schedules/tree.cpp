// NCCL's double binary tree all-reduce: half of the channels use one tree over the nodes, the other
// half its mirror image (of an odd number of nodes: the tree shifted by one), so that no node is an
// inner node of both. In a node the ranks form a chain below the rank with the edge to the parent.
//
//          root           chunk by chunk; sums go up while results come down:
//         /    \            up actor     leaf: send; inner rank: recvReduceSend
//        a      b           down actor   inner rank: recvCopySend; leaf: recv
//       / \    / \          the root     one actor: recvReduceCopySend
//
// Messages: one per chunk, edge and direction. Bytes of a rank: S up if it has a parent, S down per
// child; 2(n-1) S over all ranks.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"

namespace ghostrank {
namespace {

class NcclTreeSchedule final : public Schedule {
 public:
  NcclTreeSchedule(const Collective& c, NcclPlan plan)
      : Schedule(c, plan.flow_control(), plan.task.protocol),
        plan_(std::move(plan)),
        parts_(nccl_channel_parts(plan_)) {
    set_played(plan_.name());
  }

  // The root uses only the first of its channel's two actors; the second has no steps.
  int actors(GroupRank) const override { return 2 * static_cast<int>(parts_.size()); }
  Actor actor(GroupRank r, int a) const override {
    const NcclChannelPart& part = part_of(a);
    const auto chunks = static_cast<int>((part.count + part.chunk - 1) / part.chunk);
    const bool idle = a % 2 == 1 && links(part, r).up == kNoRank;
    return {part.channel, idle ? 0 : chunks};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    const int part = channel - plan_.split.first;
    if (static_cast<std::size_t>(part) >= parts_.size()) return actors(dst);  // none
    const bool from_above = links(parts_[part], dst).up == src;
    return 2 * part + (from_above ? 1 : 0);
  }
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    const GroupRank r = way == Way::send ? from : to;
    const NcclNodes& nodes = plan_.nodes;
    const int node = nodes.node_of(r);
    const int nic = nccl_tree_nic(*plan_.node, channel, nodes.local_of(r), nodes.ranks_of(node));
    return is_nic_beside(nic) ? nic_of(nodes.rank_at(node, local_beside(nic))) : nic;
  }
  int nics() const override { return plan_.node->nics; }

 private:
  const NcclChannelPart& part_of(int a) const { return parts_[a / 2]; }
  NcclTreeLinks links(const NcclChannelPart& part, GroupRank r) const {
    return nccl_tree_links(plan_.nodes, *plan_.node, part.channel, r);
  }

  NcclPlan plan_;
  std::vector<NcclChannelPart> parts_;
};

Step NcclTreeSchedule::step(GroupRank r, int a, int k) const {
  const NcclChannelPart& part = part_of(a);
  const NcclTreeLinks tree = links(part, r);
  const std::uint64_t begin = k * part.chunk;
  const Block block{part.offset + begin, std::min(part.chunk, part.count - begin), Buffer::work};
  Step step;
  step.recv = step.send = block;
  if (a % 2 == 0) {
    step.recv_from = tree.down;
    step.on_recv = Combine::reduce;
    step.send_to = tree.up == kNoRank ? tree.down : Peers(tree.up);
  } else {
    step.recv_from = tree.up;
    step.send_to = tree.down;
  }
  return step;
}

}  // namespace

std::unique_ptr<Schedule> nccl_tree(const Collective& c, NcclPlan plan) {
  return std::make_unique<NcclTreeSchedule>(c, std::move(plan));
}

}  // namespace ghostrank
