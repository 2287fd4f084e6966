// NCCL's NVLS and NVLSTree all-reduce: inside a node the NVLink switch reduces and multicasts;
// between nodes the double binary tree connects GPUs of equal local rank. Some GPUs, those with a
// NIC of their own, are heads of their node: in every loop of h chunks (h heads per node) each
// handles one part for its whole node. Inside one node (NVLS) every GPU is a head, and there is no
// tree.
//
//     node A           node B (root)    channel c: even channels use the first tree over the nodes,
//     0  1  2  3       0  1  2  3       odd ones the second; a message is at most a chunk
//     |  |  |  |       |  |  |  |
//     +--|--|--|------>+  |  |  |       head 0 to head 0, head 1 to head 1, ...
//        +--|--|--------->+  |  |
//
// Each head sends S/h up over the network if it has a parent, and S/h down to every child. Inside a
// node, where the switch reduces and multicasts in one operation, the schedule plays a ring of
// neighbours instead, which moves as many bytes. The ring stands for the NVLink traffic; its
// messages are not NCCL's. With fewer heads than GPUs, the steps of parts that do not exist are
// empty. In every loop, a rank with local rank l has two actors:
//
//     up     reduces the parts around the node: send of part l-1, recvReduceSend of parts l-2 ..
//            l+1, receives and reduces part l; then reduces the sums of the child nodes into part l
//            and sends it to the parent node
//     down   recvCopySend of the result of part l from the parent node to the child nodes; then
//            copies the parts around the other way: send of part l, recvCopySend of parts l+1 ..
//            l-2, recv of part l-1
//
// At the root, `up` continues with the work of `down`. It does so on every node with two ranks,
// too, because there both neighbours of a rank are the same rank.
// Bytes over the network and inside the nodes together: 2(n-1) S.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"

namespace ghostrank {
namespace {

class NcclNvlsTree final : public Schedule {
 public:
  NcclNvlsTree(const Collective& c, NcclPlan plan)
      : Schedule(c, plan.flow_control()),
        plan_(std::move(plan)),
        parts_(nccl_channel_parts(plan_)),
        ranks_(plan_.nodes.ranks_per_node()),
        heads_(static_cast<int>(plan_.graphs->heads.size())),
        head_(ranks_, kNoHead) {
    for (int h = 0; h < heads_; ++h) head_[plan_.graphs->heads[h].local] = h;
    const int nodes = plan_.nodes.nodes();
    for (int which = 0; which < 2; ++which)
      for (int node = 0; node < nodes; ++node)
        trees_[which].push_back(nccl_double_tree(nodes, node, which));
    set_played(plan_.name());
  }

  // The actors `up` and `down` of every channel.
  int actors(GroupRank) const override { return 2 * static_cast<int>(parts_.size()); }
  Actor actor(GroupRank r, int a) const override {
    const NcclChannelPart& part = part_of(a);
    const std::uint64_t loop = part.chunk * heads_;
    const auto loops = static_cast<int>((part.count + loop - 1) / loop);
    const int steps = steps_per_loop(tree_of(r, part), a);
    return {part.channel, loops * steps, steps};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    const int part = channel - plan_.split.first;
    if (static_cast<std::size_t>(part) >= parts_.size()) return actors(dst);  // none
    const NcclTreeNode& tree = tree_of(dst, parts_[part]);
    const bool above = !alone(tree) && (src == neighbour(dst, 1) || src == parent(tree, dst));
    return 2 * part + (above ? 1 : 0);
  }

 private:
  const NcclChannelPart& part_of(int a) const { return parts_[a / 2]; }
  // The rank's node in the tree of the part's channel.
  const NcclTreeNode& tree_of(GroupRank r, const NcclChannelPart& part) const {
    return trees_[part.channel % 2][static_cast<std::size_t>(plan_.nodes.node_of(r))];
  }
  // Whether the `up` actor does all the work.
  bool alone(const NcclTreeNode& tree) const { return tree.up < 0 || ranks_ == 2; }
  GroupRank parent(const NcclTreeNode& tree, GroupRank r) const {
    const int local = plan_.nodes.local_of(r);
    if (tree.up < 0 || head_of(local) == kNoHead) return kNoRank;
    return plan_.nodes.rank_at(tree.up, local);
  }
  Peers children(const NcclTreeNode& tree, GroupRank r) const;
  // The steps of the ring inside the node, plus those of the tree.
  int steps_per_loop(const NcclTreeNode& tree, int a) const {
    if (a % 2 == 1) return alone(tree) ? 0 : 1 + ranks_;
    return alone(tree) ? 2 * ranks_ + (tree.up < 0 ? 1 : 2) : ranks_ + 1;
  }
  GroupRank neighbour(GroupRank r, int distance) const {
    const int local = (plan_.nodes.local_of(r) + distance + ranks_) % ranks_;
    return plan_.nodes.rank_at(plan_.nodes.node_of(r), local);
  }
  static constexpr int kNoHead = -1;
  int head_of(int local) const { return head_[local]; }
  Block block_of(const NcclChannelPart& part, int loop, int head) const;
  Step around(GroupRank r, const NcclChannelPart& part, int loop, int i, int direction) const;

  NcclPlan plan_;
  std::vector<NcclChannelPart> parts_;
  int ranks_, heads_;      // of a node
  std::vector<int> head_;  // by local rank: the number of its part, or kNoHead
  std::array<std::vector<NcclTreeNode>, 2> trees_;  // of even and of odd channels, by node
};

Peers NcclNvlsTree::children(const NcclTreeNode& tree, GroupRank r) const {
  const int local = plan_.nodes.local_of(r);
  Peers out;
  if (head_of(local) == kNoHead) return out;
  for (const int child : tree.child)
    if (child >= 0) out.push(plan_.nodes.rank_at(child, local));
  return out;
}

// Part `head` of a loop; the last loop splits the remaining elements evenly.
Block NcclNvlsTree::block_of(const NcclChannelPart& part, int loop, int head) const {
  const std::uint64_t heads = heads_;
  const std::uint64_t begin = loop * heads * part.chunk;
  const std::uint64_t rest = part.count - begin;
  std::uint64_t length = part.chunk;
  if (rest < heads * length) {
    const std::uint64_t line = 16 / collective().element_bytes;
    length = ((rest + heads - 1) / heads + line - 1) / line * line;
  }
  const std::uint64_t from = std::min(rest, head * length);
  return {part.offset + begin + from, std::min(length, rest - from), Buffer::work};
}

// Step i of the ring inside the node: direction 1 reduces upwards, -1 copies downwards.
Step NcclNvlsTree::around(GroupRank r, const NcclChannelPart& part, int loop, int i,
                          int direction) const {
  const int local = plan_.nodes.local_of(r);
  const int head = head_of((direction > 0 ? local - 1 - i + ranks_ : local + i) % ranks_);
  Step step;
  if (head == kNoHead) return step;
  step.send = step.recv = block_of(part, loop, head);
  step.on_recv = direction > 0 ? Combine::reduce : Combine::copy;
  if (i > 0) step.recv_from = neighbour(r, -direction);
  if (i + 1 < ranks_) step.send_to = neighbour(r, direction);
  return step;
}

Step NcclNvlsTree::step(GroupRank r, int a, int k) const {
  const NcclChannelPart& part = part_of(a);
  const NcclTreeNode& tree = tree_of(r, part);
  const int per_loop = steps_per_loop(tree, a), loop = k / per_loop;
  int i = k % per_loop;
  const bool up = a % 2 == 0, turns = up && i == ranks_;
  if (up && i < ranks_) return around(r, part, loop, i, 1);
  if (up) i -= ranks_ + (tree.up < 0 ? 0 : 1);
  if (!turns && i > 0) return around(r, part, loop, i - 1, -1);
  Step step;
  const int head = head_of(plan_.nodes.local_of(r));
  if (head != kNoHead) step.send = step.recv = block_of(part, loop, head);
  const GroupRank above = parent(tree, r);
  const Peers below = children(tree, r);
  step.recv_from = turns ? below : Peers(above);
  step.send_to = turns && above != kNoRank ? Peers(above) : below;
  if (turns) step.on_recv = Combine::reduce;
  return step;
}

}  // namespace

std::unique_ptr<Schedule> nccl_nvls_tree(const Collective& c, NcclPlan plan) {
  const auto demand = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
  };
  const bool tree = plan.algorithm == NcclAlgorithm::nvls_tree;
  if (c.size > 1) {
    demand(plan.nodes.ranks_per_node() > 1 && plan.nodes.uniform(),
           "NCCL uses NVLS only with several ranks per node, as many on every node");
    demand(tree == (plan.nodes.nodes() > 1), tree ? "NCCL uses NVLSTree only between nodes"
                                                  : "NCCL uses NVLS only inside a node, where it "
                                                    "has no CollNet plug-in");
    demand(plan.graphs->nvls.channels > 1,
           "NCCL has no NVLS here: it needs Hopper GPUs with an NVLink switch, and between nodes "
           "two GPUs with NICs of their own");
  }
  return std::make_unique<NcclNvlsTree>(c, std::move(plan));
}

}  // namespace ghostrank
