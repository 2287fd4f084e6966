// See nccl/schedules/pat.h. Walks through NCCL's phases block by block and records which block is
// needed from which rank and which step completes a message. A rank then receives a message when it
// needs the first block of it.
//
// NCCL's names: `delta` is the distance between the aggregated trees, `agg` their number, `post`
// the number of blocks in a message, `as` the offset within the trees, `scale` the level above
// them.
#include <algorithm>
#include <bit>
#include <map>
#include <stdexcept>
#include <utility>

#include "collectives/common/powers.h"
#include "collectives/nccl/schedules/pat.h"

namespace ghostrank {
namespace {

int lowest_bit(int s) { return std::countr_zero(static_cast<unsigned>(s)); }

// Reverses the bits of ~a below `length`, a power of two.
int mirror_inverted(int a, int length) {
  int result = 0;
  for (int bit = 1, image = length / 2; bit < length; bit *= 2, image /= 2)
    if ((a & bit) == 0) result += image;
  return result;
}

class Walk {
 public:
  Walk(int ranks, std::uint64_t block_bytes, std::uint64_t chunk_bytes) : ranks_(ranks) {
    delta_ = power_of_two_above(ranks);
    const auto deepen = [&] {
      agg_ *= 2;
      delta_ /= 2;
    };
    while (chunk_bytes / (block_bytes * agg_) >= 2 && agg_ < ranks / 2) deepen();
    post_ = agg_;
    for (int i = 0; i < 3 && agg_ < ranks / 2; ++i) deepen();
  }

  NcclPatPattern reduce_scatter() {
    for (int as = delta_ - 1; as >= 1; --as) {
      if (as % 2 == 1) rs_leaves(as);
      if (as > 1) rs_inner(as);
    }
    for (int scale = 1; scale < agg_; scale *= 2) rs_trees(scale);
    receive(0, 1);
    return pattern(-1);
  }

  NcclPatPattern all_gather() {
    for (int scale = agg_ / 2; scale >= 1; scale /= 2) {
      const int length = agg_ / (2 * scale);
      for (int a = 0; a < length; ++a) ag_step(a, (2 * a + 1) * scale * delta_, 2 * scale * delta_);
    }
    ag_visit(0, lowest_bit(delta_));
    return pattern(1);
  }

 private:
  struct Event {
    enum class Kind : std::uint8_t { receive, send } kind = Kind::send;
    int dimension = 0, offset = 0;  // receive: offset of the block, see receive()
    int message = 0;                // send
  };

  // Records that the rank needs a block. Its offset is relative to the sender in a reduce-scatter,
  // to this rank in an all-gather.
  void receive(int dimension, int offset) {
    events_.push_back({Event::Kind::receive, dimension, offset, 0});
  }

  // Puts a block into the open message, at the position of step `a`; unwritten positions before it
  // are holes.
  void write(int a, int offset, int dimension, bool complete) {
    const int slot = a % post_;
    if (slot == 0 || slot < std::ssize(open_.blocks)) open_.blocks.clear();
    open_.dimension = dimension;
    open_.blocks.resize(slot, NcclPatPattern::kHole);
    open_.blocks.push_back(offset);
    if (!complete) return;
    events_.push_back({Event::Kind::send, 0, 0, static_cast<int>(messages_.size())});
    messages_.push_back(std::exchange(open_, {}));
  }

  bool ends_message(int a, int length) const { return a % post_ == post_ - 1 || a == length - 1; }

  // The leaves send their own contributions to the blocks.
  void rs_leaves(int as) {
    for (int a = 0; a < agg_; ++a) {
      const int s = mirror_inverted(a, agg_) * delta_ + as;
      if (s < ranks_) write(a, s, 0, ends_message(a, agg_));
    }
  }

  // Reduces the contribution of a child. The child at distance 1 is the last one; after it the sum
  // is sent on.
  void rs_inner(int as) {
    for (int a = 0; a < agg_; ++a) {
      const int s = mirror_inverted(a, agg_) * delta_ + as;
      const int dimension = lowest_bit(s), rest = s - (1 << dimension);
      if (s < ranks_) receive(dimension, s);
      if (dimension == 0 && rest < ranks_) write(a, rest, lowest_bit(rest), ends_message(a, agg_));
    }
  }

  // One level of the tree that the roots of the aggregated trees form.
  void rs_trees(int scale) {
    const int length = agg_ / (2 * scale);
    const auto root = [&](int a) { return (2 * mirror_inverted(a, length) + 1) * scale * delta_; };
    for (int a = 0; a < length; ++a) {
      const int s = root(a);
      if (s + 1 < ranks_) receive(0, s + 1);
      if (s < ranks_) write(a, s, lowest_bit(s), ends_message(a, length));
    }
    for (int a = 0; a < length; ++a)
      if (root(a) < ranks_) receive(lowest_bit(root(a)), root(a));
  }

  // Forwards the block whose owner is `s` ahead of the receiver. The message ends if the block of
  // the next step, `stride` further on, does not exist.
  void ag_step(int a, int s, int stride) {
    const int dimension = lowest_bit(s), block = s - (1 << dimension);
    if (block > 0 && block < ranks_) receive(lowest_bit(block), block);
    if (s < ranks_) write(a, block, dimension, a % post_ == post_ - 1 || s + stride >= ranks_);
  }

  void ag_visit(int from, int levels) {
    for (int d = levels - 1; d >= 0; --d) {
      const int as = from + (1 << d);
      for (int a = 0; a < agg_; ++a) ag_step(a, a * delta_ + as, delta_);
      for (int a = 0; a < agg_ && as % 2 == 1; ++a)
        if (a * delta_ + as < ranks_) receive(0, a * delta_ + as);
      ag_visit(as, d);
    }
  }

  // Finds the message of each needed block. `shift` 1: an all-gather's receiver counts a block's
  // offset from itself; -1: a reduce-scatter's receiver uses the sender's offset.
  NcclPatPattern pattern(int shift) {
    std::map<std::pair<int, int>, int> message_of;
    for (std::size_t m = 0; m < messages_.size(); ++m)
      for (const int block : messages_[m].blocks)
        if (block != NcclPatPattern::kHole) {
          const int d = messages_[m].dimension;
          message_of[{d, shift > 0 ? block + (1 << d) : block}] = static_cast<int>(m);
        }
    NcclPatPattern result;
    std::vector<bool> received(messages_.size());
    for (const Event& event : events_) {
      if (event.kind == Event::Kind::send) {
        if (result.steps.empty() || result.steps.back().send >= 0) result.steps.emplace_back();
        result.steps.back().send = event.message;
        continue;
      }
      const int m = message_of.at({event.dimension, event.offset});
      if (received[m]) continue;
      received[m] = true;
      result.steps.push_back({m, -1});
    }
    result.messages = std::move(messages_);
    return result;
  }

  int ranks_;
  int agg_ = 1, delta_ = 1, post_ = 1;
  NcclPatPattern::Message open_;
  std::vector<NcclPatPattern::Message> messages_;
  std::vector<Event> events_;
};

}  // namespace

NcclPatPattern nccl_pat_pattern(Func func, int ranks, std::uint64_t block_bytes,
                                std::uint64_t chunk_bytes) {
  if (ranks < 2 || block_bytes == 0) return {};
  Walk walk(ranks, block_bytes, chunk_bytes);
  return func == Func::all_gather ? walk.all_gather() : walk.reduce_scatter();
}

}  // namespace ghostrank
