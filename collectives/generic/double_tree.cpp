// Double binary tree all-reduce, broadcast and reduce: two trees over all positions, each for one
// half of the data. A position that has children in one tree is a leaf of the other. All but a few
// positions send and receive as much as in a ring, in O(log n) steps.
//
//   size 6        first tree             second tree: mirrored; for odd sizes shifted by one
//   root          3                      2
//   its children  1      5               4      0
//   and theirs    0 2    4               5 3    1
//
// The first tree is the in-order tree: give positions 0 .. n-1 the labels 1 .. n; a label whose
// lowest set bit is b has children at distance b/2 on both sides (the right one nearer if the
// labels end before it). Every tree reduces towards its root and copies back, slice by slice. Up
// and down are two actors of a rank, because one slice may come down while the next still goes up.
// In NCCL's terms: leaves send, inner positions recvReduceSend, the root does recvReduceCopySend;
// then inner positions recvCopySend and leaves recv. Ranks keep the group's order; with more
// channels there are more pairs of trees.
//
// Broadcast and reduce: both trees consist of all ranks but the root, counted from it around the
// group. The root sends to (in a reduce: receives from) the two ranks at the top of the trees, a
// slice to each in turn, so that both trees are filled at once.
//
// Steps about 4 log2 n, half of that for broadcast and reduce, because a position serves its two
// children one after the other in either direction. Bytes 2(n-1) S in total; broadcast and reduce
// (n-1) S.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "collectives/common/powers.h"
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int lowest_bit(int label) { return label & -label; }

// The parent of a label among 1 .. n; 0 for the root.
int parent_of(int label, int n) {
  const int bit = lowest_bit(label), without = label ^ bit;
  const int balanced = without | (bit << 1);
  return balanced <= n ? balanced : without;
}

// The left and the right child of a label; 0 if there is none.
int left_of(int label) { return lowest_bit(label) == 1 ? 0 : label - lowest_bit(label) / 2; }
int right_of(int label, int n) {
  const unsigned room = std::min(n - label, lowest_bit(label) - 1);
  return room == 0 ? 0 : label + static_cast<int>(std::bit_floor(room));
}

class DoubleTree final : public Schedule {
 public:
  DoubleTree(const Collective& c, const Communicator& comm);

  int actors(GroupRank) const override { return 2 * static_cast<int>(shares_.size()); }
  Actor actor(GroupRank r, int a) const override;
  Step step(GroupRank r, int a, int k) const override;
  StepOf dependency(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    return 2 * channel + (parent(channel, dst) == src ? 1 : 0);
  }

 private:
  bool rooted() const { return collective().func != Func::all_reduce; }
  bool is_root(GroupRank r) const { return rooted() && r == collective().root; }
  // Whether the rank sends to all trees, a slice to each in turn.
  bool takes_turns(GroupRank r) const { return is_root(r) && collective().func == Func::broadcast; }
  int n() const { return collective().size - (rooted() ? 1 : 0); }  // positions in the trees

  // The label of a rank in the trees of even channels, and in those of odd channels.
  int label(int channel, GroupRank r) const {
    const int size = collective().size;
    const int position = rooted() ? (r - collective().root - 1 + size) % size : r;
    if (channel % 2 == 0) return position + 1;
    return n() % 2 == 0 ? n() - position : (position + 1) % n() + 1;
  }
  GroupRank rank(int channel, int label) const {
    if (label == 0) return kNoRank;
    int position = label - 1;
    if (channel % 2 == 1) position = n() % 2 == 0 ? n() - label : (label + n() - 2) % n();
    return rooted() ? (collective().root + 1 + position) % collective().size : position;
  }
  GroupRank parent(int channel, GroupRank r) const {
    if (is_root(r)) return kNoRank;
    const int above = parent_of(label(channel, r), n());
    return above == 0 && rooted() ? collective().root : rank(channel, above);
  }
  Peers children(int channel, GroupRank r) const {
    if (is_root(r)) return rank(channel, power_of_two_below(n()));
    Peers both(rank(channel, left_of(label(channel, r))));
    both.push(rank(channel, right_of(label(channel, r), n())));
    return both;
  }

  std::vector<Block> shares_;
  std::uint64_t slice_elements_ = 0;
  std::uint32_t slices_ = 1;
};

DoubleTree::DoubleTree(const Collective& c, const Communicator& comm)
    : Schedule(c, comm.flow_control) {
  const auto wanted = 2 * static_cast<std::uint64_t>(std::max(1, comm.channels));
  const int channels = static_cast<int>(std::min(wanted, std::max<std::uint64_t>(1, c.count)));
  for (int l = 0; l < channels; ++l) shares_.push_back(near_equal(c.count, l, channels));
  if (comm.slice_bytes == 0) return;
  slice_elements_ = std::max<std::uint64_t>(1, comm.slice_bytes / c.element_bytes);
  const std::uint64_t slices = (shares_[0].count + slice_elements_ - 1) / slice_elements_;
  if (slices > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("slices are too small to count; raise their size");
  slices_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, slices));
}

// Actor 2c goes up in channel c, and at the root of an all-reduce it also starts the way down;
// actor 2c+1 goes down.
Actor DoubleTree::actor(GroupRank r, int a) const {
  const int channel = a / 2;
  const bool down = a % 2 == 1;
  bool idle = collective().size == 1;
  if (rooted())
    idle |= down != (collective().func == Func::broadcast);
  else
    idle |= down && parent(channel, r) == kNoRank;
  const int slices = static_cast<int>(slices_);
  return {channel, idle ? 0 : takes_turns(r) ? slices : 1};
}

// A slice follows that of the tree before, or those of all trees that came before it.
StepOf DoubleTree::dependency(GroupRank, int a, int k) const {
  return a > 1 ? StepOf{a - 2, k} : StepOf{2 * static_cast<int>(shares_.size()) - 1, k - 1};
}

Step DoubleTree::step(GroupRank r, int a, int k) const {
  const int channel = a / 2;
  const GroupRank above = parent(channel, r);
  Step step;
  step.recv = step.send = shares_[channel];
  step.slices = slices_;
  step.slice_elements = slice_elements_;
  if (takes_turns(r)) {
    step.send = slice_of(shares_[channel], step, static_cast<std::uint32_t>(k));
    step.recv = step.send;
    step.slices = 1;
    step.depends = a > 1 || k > 0;
  }
  if (a % 2 == 1) {
    step.recv_from = above;
    step.send_to = children(channel, r);
  } else {
    step.on_recv = Combine::reduce;
    step.recv_from = children(channel, r);
    step.send_to = above == kNoRank && !rooted() ? children(channel, r) : Peers(above);
  }
  return step;
}

}  // namespace

std::unique_ptr<Schedule> make_double_tree(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  return std::make_unique<DoubleTree>(c, comm);
}

}  // namespace ghostrank
