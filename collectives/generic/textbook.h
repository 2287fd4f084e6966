// Turns a textbook algorithm, written as closed formulas, into a schedule for many channels.
//
// An algorithm file supplies a Form: how many rounds a position takes, and which blocks it sends
// and receives in round k. Everything else is implemented once, here: the split of the data over
// channels, the order of the ranks in each channel, ragged pieces, slices and credits.
//
//   positions   A Form knows positions 0 .. size-1, not ranks. With several ranks per node, channel
//               c keeps the nodes in order and rotates the ranks inside every node by c, so that a
//               ring of channel c enters a node at its local rank c and leaves it at local rank
//               c-1 (both modulo the ranks of the node): the channels use all NICs of a node.
//   rounds      In round k a position first sends, then receives. A schedule's step is the other
//               way round: step k receives the block of round k-1 and sends the block of round k.
//               R rounds become R+1 steps, and a ring forwards what it receives slice by slice.
//   slices      A channel cuts its largest block into m slices and every smaller one into m as
//               well, the last ones possibly empty: both ends of a message know m without asking.
//   credits     With W < m credits no rank may send m slices before it receives one. The rounds are
//               then cut after W slices, and 2R+1 steps keep exactly W slices ahead:
//
//                 step 2k     receives the last W slices of round k-1, sends the first W of round k
//                 step 2k+1   receives the first m-W of round k, sends the last m-W of round k
//
//               Number the slices over all rounds: a rank sends slice j after it has received slice
//               j-W. In a cycle of waiting ranks each would wait for an ever earlier slice, so
//               there is no such cycle and no deadlock. In a one-way form no cycle of ranks can
//               wait: it keeps its R+1 steps, and passes slices on as they come.
//   pace        If message sizes differ from round to round, each message is cut into slices by its
//               own size, and a round is four steps, some of them empty, that keep W slices ahead:
//               send the first W; receive and send slice by slice; send the rest; receive the rest.
//               An `eager` form first does the first of the four for all rounds.
//   ragged      The blocks of the v-variants are split over the channels one by one.
//   scattered   Messages made of blocks that do not follow each other in the buffer are not cut.
//
// Units: elements. Threading: immutable. Memory does not depend on the group's size unless nodes
// have unequal numbers of ranks or blocks differ in size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/layout.h"
#include "collectives/schedule.h"

namespace ghostrank {

// The ranks of one node: [first, first + ranks) of the group.
struct NodeSpan {
  std::int32_t first = 0;
  std::int32_t ranks = 1;
};

// Nodes as contiguous runs of group ranks. Every other layout counts as one rank per node.
class Nodes {
 public:
  Nodes() = default;
  explicit Nodes(const std::vector<std::int32_t>& node_of);
  NodeSpan of(GroupRank r) const {
    return spans_ ? (*spans_)[r] : NodeSpan{r - r % ranks_, ranks_};
  }
  bool single_ranks() const { return !spans_ && ranks_ == 1; }
  // Ranks per node; 1 if nodes differ in size.
  std::int32_t ranks_each() const { return spans_ ? 1 : ranks_; }

 private:
  std::int32_t ranks_ = 1;                              // ranks per node, if spans_ is null
  std::shared_ptr<const std::vector<NodeSpan>> spans_;  // by rank; null if all nodes have one size
};

// Maps positions of a channel to ranks and back. A node's ranks keep the node's positions.
class Order {
 public:
  Order() = default;
  Order(Nodes nodes, int rotation)
      : nodes_(std::move(nodes)), rotation_(nodes_.single_ranks() ? 0 : rotation) {}
  GroupRank rank_at(int position) const {
    if (rotation_ == 0) return position;
    const NodeSpan node = nodes_.of(position);
    return node.first + (position - node.first + rotation_) % node.ranks;
  }
  int position_of(GroupRank rank) const {
    if (rotation_ == 0) return rank;
    const NodeSpan node = nodes_.of(rank);
    const int back = node.ranks - rotation_ % node.ranks;
    return node.first + (rank - node.first + back) % node.ranks;
  }

 private:
  Nodes nodes_;
  int rotation_ = 0;
};

// One channel's share of every block of a collective whose blocks differ in size.
struct Ragged {
  std::shared_ptr<const Layout> layout;
  int channel = 0, channels = 1;
  // By position, for all-gather-v only: number of elements in the blocks of all earlier positions.
  std::vector<std::uint64_t> before;

  Block share_of(const Block& block) const;
};

// What a Form may know of one channel of a collective.
struct ChannelView {
  int size = 1;
  int root = 0;          // position of the collective's root
  int target = 1;        // of a send_recv: position of its receiver
  int ranks_a_node = 1;  // 1 if nodes differ in size or are scattered
  Order order;
  Block share;  // this channel's part of elements 0 .. count-1
  // From block j to block j+1 of a buffer with one block per rank.
  std::uint64_t block_stride = 0;
  std::uint64_t piece_elements = 0;      // of the shorter pieces
  std::uint64_t long_pieces = 0;         // the first long_pieces pieces have one element more
  std::shared_ptr<const Ragged> ragged;  // null: all blocks have one size

  // Wraps p into 0 .. size-1; p may be negative by any amount, or less than 2 * size.
  int wrap(int p) const {
    while (p < 0) p += size;
    return p < size ? p : p - size;
  }
  // Piece j of the share, cut into `size` near-equal pieces; some are empty if elements are too
  // few.
  Block piece(int j) const {
    const auto i = static_cast<std::uint64_t>(j);
    return {share.offset + i * piece_elements + (i < long_pieces ? i : long_pieces),
            piece_elements + (i < long_pieces ? 1 : 0), Buffer::work};
  }
  // Parts [first, first + n) of the share, cut into `parts` near-equal parts.
  Block range(int first, int n, int parts) const {
    const auto part = [&](int j) {
      const auto i = static_cast<std::uint64_t>(j), of = static_cast<std::uint64_t>(parts);
      return i * (share.count / of) + std::min(i, share.count % of);
    };
    return {share.offset + part(first), part(first + n) - part(first), Buffer::work};
  }
  // The length of a message that holds this channel's share of n blocks.
  Block blocks(int n) const { return {0, static_cast<std::uint64_t>(n) * share.count}; }
  // The same for the blocks of positions first .. first + n - 1, wrapping; correct for ragged
  // blocks too.
  Block blocks(int first, int n) const {
    if (!ragged) return blocks(n);
    const std::vector<std::uint64_t>& before = ragged->before;
    const auto from = static_cast<std::size_t>(first), to = static_cast<std::size_t>(first + n),
               all = static_cast<std::size_t>(size);
    if (to <= all) return {0, before[to] - before[from]};
    return {0, before[all] - before[from] + before[to - all]};
  }
  // This channel's share of the block that belongs to the rank at `position`.
  Block block(int position) const {
    const GroupRank rank = order.rank_at(position);
    if (ragged) return ragged->share_of(ragged->layout->work(rank, rank));
    return {static_cast<std::uint64_t>(rank) * block_stride + share.offset, share.count};
  }
  // All-to-alls: this channel's share of the block from `from` to `to` (positions), in the sender's
  // input buffer, and in the receiver's work buffer.
  Block outgoing(int from, int to) const { return exchanged(from, to, Buffer::input); }
  Block incoming(int from, int to) const { return exchanged(from, to, Buffer::work); }

 private:
  Block exchanged(int from, int to, Buffer buffer) const {
    const GroupRank sender = order.rank_at(from), receiver = order.rank_at(to);
    const bool leaves = buffer == Buffer::input;
    if (ragged)
      return ragged->share_of(leaves ? ragged->layout->input(sender, receiver)
                                     : ragged->layout->work(receiver, sender));
    const auto block = static_cast<std::uint64_t>(leaves ? receiver : sender);
    return {block * block_stride + share.offset, share.count, buffer};
  }
};

// One direction of one round. kNoRank: the position sends, or receives, nothing.
struct Transfer {
  int peer = kNoRank;  // a position
  Block block;
  Combine combine = Combine::copy;  // for receives only
};

// Both ends of a connection must list its transfers in the same order. With pace `even`, the blocks
// of all rounds have the same size, except that pieces may differ by one element.
struct Form {
  enum class Unit : std::uint8_t { piece, share };  // content of a message at even pace
  enum class Ranks : std::uint8_t { rotated, in_order };
  enum class Pace : std::uint8_t { even, uneven, eager };
  Unit unit = Unit::share;
  Ranks ranks = Ranks::rotated;
  Pace pace = Pace::even;
  bool one_way = false;  // data passes from one end of the group to the other, never back
  int (*rounds)(const ChannelView&, int position) = nullptr;
  Transfer (*send)(const ChannelView&, int position, int round) = nullptr;
  Transfer (*recv)(const ChannelView&, int position, int round) = nullptr;
  // Set only if the position receives from the same peer in every round, and sends in every round
  // the block that it received in the round before (a ring): returns the peer it sends to. An
  // optimisation; must agree with `send`.
  int (*passes_on)(const ChannelView&, int position) = nullptr;
  // Appends the blocks of a scattered message to `out`, as many elements as the transfer's block
  // says; null: no message is scattered.
  void (*pieces)(const ChannelView&, int position, int round, Way,
                 std::vector<Block>& out) = nullptr;
};

// Block j of `count` elements cut into `pieces` near-equal parts.
Block near_equal(std::uint64_t count, int j, int pieces);

// Throws std::invalid_argument for an invalid size, root, element size, number of counts or
// node_of.
void check_arguments(const Collective& c, const Communicator& comm);

// One actor per channel; the actor's index is the channel. At least one channel, at most one per
// element of the largest block. Throws std::invalid_argument as check_arguments() does, and if a
// block has more slices than an int32 counts.
class Textbook final : public Schedule {
 public:
  Textbook(const Form& form, const Collective& c, const Communicator& comm);

  int actors(GroupRank r) const override;
  Actor actor(GroupRank r, int a) const override;
  Step step(GroupRank r, int a, int k) const override;
  void next_step(GroupRank r, int a, int k, Step& step) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override;
  void pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const override;

 private:
  struct ChannelPlan {
    ChannelView view;
    std::uint32_t slices = 1;
    std::uint32_t window = 1;          // slices sent before the first one is received
    std::uint64_t slice_elements = 0;  // 0: one slice
    bool in_parts = false;             // a round is four steps; two if no message is cut
  };
  ChannelPlan plan_channel(const Communicator& comm, const Nodes& nodes, int channel,
                           int channels) const;
  std::shared_ptr<const Ragged> make_ragged(const Order& order, int channel, int channels) const;
  Step fused_step(const ChannelPlan& plan, int position, int k) const;
  Step windowed_step(const ChannelPlan& plan, int position, int k) const;
  Step part_step(const ChannelPlan& plan, int position, int k) const;

  Form form_;
  std::shared_ptr<const Layout> layout_;
  std::vector<ChannelPlan> plans_;
};

}  // namespace ghostrank
