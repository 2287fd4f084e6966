// Gloo's halving-doubling all-reduce, derived from its source. The group is split into blocks of
// 2^b ranks, one per set bit b of n, the largest first. Inside a block of B ranks, each rank halves
// its window of the vector log2 B times, nearest partner first; the lower number keeps the lower
// half. It then doubles the window again by the same way back. In between, every block but the
// largest scatters its windows to the next larger block, which reduces them and later returns them
// complete: the smallest block scatters first, the largest returns first.
//
// clang-format off
//   size 6: blocks 0 1 2 3 and 4 5; windows of 4 chunks
//   rank 1   0: 01 > 23   3: 3 > 2   5: > 2           5: 2 >            3: 2 > 3   0: 23 > 01
//   rank 5   4: 01 > 23              1: 2 >  3: 3 >   1: > 2  3: > 3               4: 23 > 01
// clang-format on
//
// "0: 01 > 23" sends chunks 0 and 1 to rank 0 and receives chunks 2 and 3 from it. A chunk is 1/m
// of the vector, rounded up, where m is the largest power of two <= n; so the last chunks may be
// short or empty, and gloo does not send empty ones. A block uses its receive buffers twice.
// Therefore a partner announces with a message of 4 bytes that it has read one: before a window is
// sent back, and once more at the end.
//
// Bytes 2(n-1) S and the notifications. The messages of every connection, their sizes and their
// order are exact, except that a notification is rounded up to whole elements: it has 8 bytes if
// elements have 8.
//
// Units: elements. Threading: immutable.
#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "collectives/common/powers.h"
#include "collectives/generic/textbook.h"
#include "collectives/gloo/gloo.h"

namespace ghostrank {
namespace {

int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

int lowest_bits_reversed(int number, int bits) {
  int reversed = 0;
  for (int i = 0; i < bits; ++i) reversed = reversed << 1 | (number >> i & 1);
  return reversed;
}

// The block of a rank and the neighbouring blocks; a neighbour of size 0 does not exist.
struct BlockMember {
  int size, first, levels;
  int smaller, larger;
  int number;  // in the block

  BlockMember(int n, GroupRank r)
      : size(power_of_two_below(n ^ r)),
        first(r & ~(size - 1)),
        levels(log2_of(size)),
        smaller(power_of_two_below(n & (size - 1))),
        larger((n & -(2 * size)) & -(n & -(2 * size))),
        number(r - first) {}
  int parts() const { return larger / size; }
  GroupRank in_smaller() const { return first + size + number % smaller; }
  int in_larger(int part) const {
    return lowest_bits_reversed(lowest_bits_reversed(number, levels) * parts() + part,
                                log2_of(larger));
  }
};

class GlooHalving final : public Schedule {
 public:
  explicit GlooHalving(const Collective& c)
      : Schedule(c), cut_(gloo_halving_cut(c)), levels_(log2_of(static_cast<int>(cut_.chunks))) {}

  int actors(GroupRank) const override { return 1; }
  Actor actor(GroupRank r, int) const override;
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank, int, GroupRank) const override { return 0; }
  void pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const override;

 private:
  // The window that a member of a block holds after `level` halvings.
  Block window(int number, int level) const;
  Step scatter_step(const BlockMember& member, int k) const;
  Step to_larger_step(const BlockMember& member, int k) const;
  Step gather_step(const BlockMember& member, int k) const;
  Block notification() const { return {0, cut_.notification, Buffer::none}; }

  GlooHalvingCut cut_;
  int levels_;
};

void receive(Step& step, GroupRank from, const Block& block, Combine combine = Combine::copy) {
  if (block.count == 0) return;
  step.recv_from = from;
  step.recv = block;
  step.on_recv = combine;
}

void send(Step& step, GroupRank to, const Block& block) {
  if (block.count == 0) return;
  step.send_to = to;
  step.send = block;
}

GroupRank partner(const BlockMember& member, int level) {
  return member.first + (member.number ^ (1 << level));
}

Block GlooHalving::window(int number, int level) const {
  const std::uint64_t elements = cut_.elements << (levels_ - level), count = collective().count;
  const std::uint64_t ordinal = lowest_bits_reversed(number, level);
  const std::uint64_t offset = std::min(count, ordinal * elements);
  return {offset, std::min(elements, count - offset)};
}

Actor GlooHalving::actor(GroupRank r, int) const {
  const Collective& c = collective();
  if (c.size == 1 || c.count == 0) return {};
  const BlockMember member(c.size, r);
  const int back_and_forth = member.smaller > 0 ? 2 : 0, scattered = 2 * member.parts();
  return {0, 5 * member.levels + back_and_forth + scattered};
}

Step GlooHalving::step(GroupRank r, int, int k) const {
  const BlockMember member(collective().size, r);
  if (k < 2 * member.levels) return scatter_step(member, k);
  k -= 2 * member.levels;
  const Block kept = window(member.number, member.levels);
  Step step;
  if (member.smaller > 0) {
    const GroupRank peer = member.in_smaller();
    if (k == 0) {
      receive(step, peer, kept, Combine::reduce);
      return step;
    }
    if (k == 1 + 2 * member.parts()) {
      send(step, peer, kept);
      return step;
    }
    k -= k <= 2 * member.parts() ? 1 : 2;
  }
  if (k < 2 * member.parts()) return to_larger_step(member, k);
  return gather_step(member, k - 2 * member.parts());
}

// Two steps per level: send the half that the partner keeps; receive and reduce the own half, and
// acknowledge it.
Step GlooHalving::scatter_step(const BlockMember& member, int k) const {
  const int level = k / 2, other = member.number ^ (1 << level);
  const GroupRank peer = partner(member, level);
  Step step;
  if (k % 2 == 0) {
    send(step, peer, window(other, level + 1));
    return step;
  }
  receive(step, peer, window(member.number, level + 1), Combine::reduce);
  send(step, peer, notification());
  step.scattered = true;
  return step;
}

Step GlooHalving::to_larger_step(const BlockMember& member, int k) const {
  const int number = member.in_larger(k % member.parts());
  const GroupRank peer = member.first - member.larger + number;
  const Block part = window(number, log2_of(member.larger));
  Step step;
  if (k < member.parts())
    send(step, peer, part);
  else
    receive(step, peer, part);
  return step;
}

// Two steps per level on the way back, then one per level for the second acknowledgement.
Step GlooHalving::gather_step(const BlockMember& member, int k) const {
  const bool last = k >= 2 * member.levels;
  const int level = member.levels - 1 - (last ? k - 2 * member.levels : k / 2);
  const GroupRank peer = partner(member, level);
  Step step;
  step.scattered = true;
  if (last) {
    receive(step, peer, notification());
  } else if (k % 2 == 0) {
    receive(step, peer, notification());
    send(step, peer, window(member.number, level + 1));
  } else {
    receive(step, peer, window(member.number ^ (1 << level), level + 1));
    send(step, peer, notification());
  }
  return step;
}

void GlooHalving::pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const {
  const Step step = this->step(r, a, k);
  if (!step.scattered) return;
  const bool taken = way == Way::recv ? !step.recv_from.empty() : !step.send_to.empty();
  out.clear();
  if (taken) out.push_back(way == Way::recv ? step.recv : step.send);
}

}  // namespace

GlooHalvingCut gloo_halving_cut(const Collective& c) {
  const std::uint64_t chunks = std::bit_floor(static_cast<std::uint64_t>(c.size));
  return {(c.count + chunks - 1) / chunks, chunks,
          (kGlooNotificationBytes + c.element_bytes - 1) / c.element_bytes};
}

std::unique_ptr<Schedule> make_gloo_halving(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  return std::make_unique<GlooHalving>(c);
}

}  // namespace ghostrank
