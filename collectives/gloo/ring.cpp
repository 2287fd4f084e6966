// Gloo's rings, derived from its source: all-reduce, reduce and all-gather, with two operations in
// flight. Iteration i waits for the receive of iteration i-2 and reduces it, then posts its own
// send and receive. So step i of the schedule receives the segment of iteration i-2 and sends the
// segment of iteration i; two more steps end a phase. A receive is posted two steps ahead, and data
// leaves only for posted receives (gloo.h).
//
// clang-format off
//                    sends to rank-1           receives from rank+1
//   reduce-scatter   segment (rank+1) s + i    segment (rank+2) s + i, reduces
//   all-gather       segment  rank    s + i    segment (rank+1) s + i, copies
// clang-format on
//
// Here s is the number of segments per rank, and segment numbers wrap around. All-reduce is the
// reduce-scatter followed by the all-gather. Reduce continues for s-2 iterations after its
// reduce-scatter is complete (harmless: nobody uses the received data), then every rank sends its
// chunk to the root. The all-gather of blocks runs the other way: to rank+1, every block in two
// halves.
//
// The messages of every connection, their sizes and their order are exact; but gloo halves a block
// by bytes, and this schedule by elements. The end of a reduce is an approximation: gloo's root
// posts all receives at once, here it posts those of two chunks ahead.
#include <algorithm>
#include <memory>
#include <vector>

#include "collectives/generic/textbook.h"
#include "collectives/gloo/gloo.h"

namespace ghostrank {
namespace {

std::uint64_t div_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }
std::uint64_t round_up(std::uint64_t a, std::uint64_t to) { return div_up(a, to) * to; }

std::uint64_t max_segment_bytes(const Collective& c) {
  return c.element_bytes * std::max<std::uint64_t>(1, kGlooMaxSegmentBytes / c.element_bytes);
}

// Rounds up to at least two segments per rank, equally many for every rank.
std::uint64_t segments_for_all(const Collective& c, std::uint64_t needed) {
  const std::uint64_t n = c.size;
  return round_up(std::max(needed, 2 * n), n);
}

// One phase of a ring.
struct Phase {
  std::uint64_t sends = 0;  // chunk sent in the first iteration, relative to the rank
  int iterations = 0;
  Combine combine = Combine::copy;
  int steps() const { return iterations + 2; }
};

class GlooRing final : public Schedule {
 public:
  explicit GlooRing(const Collective& c);

  int actors(GroupRank) const override { return 1; }
  Actor actor(GroupRank r, int) const override;
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank, int, GroupRank) const override { return 0; }

 private:
  Step ring_step(GroupRank r, const Phase& phase, int k) const;
  Step halves_step(GroupRank r, int k) const;
  Step to_root_step(GroupRank r, int k) const;
  Block segments(std::uint64_t first, std::uint64_t n) const;
  Block chunk(GroupRank r) const { return segments(r * cut_.per_rank, cut_.per_rank); }
  GroupRank wrap(int r) const { return (r + collective().size) % collective().size; }

  GlooSegments cut_;
  std::vector<Phase> phases_;
};

GlooRing::GlooRing(const Collective& c)
    : Schedule(c, {.posting = {
                       .receives = 2, .sends = 2, .receives_first = c.func != Func::all_gather}}) {
  if (c.size == 1 || c.count == 0) return;
  if (c.func == Func::all_gather) {
    phases_ = {{0, 2 * (c.size - 1), Combine::copy}};
    return;
  }
  const bool reduce = c.func == Func::reduce;
  cut_ = reduce ? gloo_reduce_segments(c) : gloo_all_reduce_segments(c);
  const int others = static_cast<int>(cut_.all - cut_.per_rank);
  if (reduce)
    phases_ = {{1, static_cast<int>(cut_.all - 2), Combine::reduce}};
  else
    phases_ = {{1, others, Combine::reduce}, {0, others, Combine::copy}};
}

Actor GlooRing::actor(GroupRank r, int) const {
  if (phases_.empty()) return {};
  const Collective& c = collective();
  int steps = 0;
  for (const Phase& phase : phases_) steps += phase.steps();
  if (c.func == Func::reduce) steps += r == c.root ? c.size - 1 : 1;
  return {0, steps};
}

Step GlooRing::step(GroupRank r, int, int k) const {
  if (collective().func == Func::all_gather) return halves_step(r, k);
  for (const Phase& phase : phases_) {
    if (k < phase.steps()) return ring_step(r, phase, k);
    k -= phase.steps();
  }
  return to_root_step(r, k);
}

// Segments [first, first + n), cut at the end of the buffer; empty beyond it.
Block GlooRing::segments(std::uint64_t first, std::uint64_t n) const {
  const std::uint64_t count = collective().count;
  const std::uint64_t offset = std::min(count, first % cut_.all * cut_.elements);
  return {offset, std::min(n * cut_.elements, count - offset)};
}

Step GlooRing::ring_step(GroupRank r, const Phase& phase, int k) const {
  const auto segment = [&](std::uint64_t ahead, int i) {
    const std::uint64_t first = (r + ahead) * cut_.per_rank;
    return segments(first + i, 1);
  };
  Step step;
  step.on_recv = phase.combine;
  if (k >= 2) step.recv = segment(phase.sends + 1, k - 2);
  if (k < phase.iterations) step.send = segment(phase.sends, k);
  if (step.recv.count > 0) step.recv_from = wrap(r + 1);
  if (step.send.count > 0) step.send_to = wrap(r - 1);
  return step;
}

Step GlooRing::halves_step(GroupRank r, int k) const {
  const std::uint64_t count = collective().count;
  const auto half = [&](GroupRank owner, int i) -> Block {
    const std::uint64_t begin = owner * count, first = count / 2;
    return i % 2 == 0 ? Block{begin, first} : Block{begin + first, count - first};
  };
  Step step;
  if (k >= 2) {
    step.recv_from = wrap(r - 1);
    step.recv = half(wrap(r - 1 - (k - 2) / 2), k);
  }
  if (k < phases_.front().iterations) {
    step.send_to = wrap(r + 1);
    step.send = half(wrap(r - k / 2), k);
  }
  return step;
}

Step GlooRing::to_root_step(GroupRank r, int k) const {
  const GroupRank root = collective().root, other = k < root ? k : k + 1;
  Step step;
  if (r == root) {
    step.recv = chunk(other);
    if (step.recv.count > 0) step.recv_from = other;
  } else {
    step.send = chunk(r);
    if (step.send.count > 0) step.send_to = root;
  }
  return step;
}

}  // namespace

GlooSegments gloo_all_reduce_segments(const Collective& c) {
  const std::uint64_t bytes = c.count * c.element_bytes;
  const std::uint64_t all = segments_for_all(c, div_up(bytes, max_segment_bytes(c)));
  const std::uint64_t segment = round_up(div_up(bytes, all), c.element_bytes);
  return {segment / c.element_bytes, all / c.size, all};
}

GlooSegments gloo_reduce_segments(const Collective& c) {
  const std::uint64_t bytes = c.count * c.element_bytes;
  const std::uint64_t n = c.size;
  const std::uint64_t segment =
      round_up(std::min(div_up(bytes, 2 * n), max_segment_bytes(c)), c.element_bytes);
  const std::uint64_t all = segments_for_all(c, segment == 0 ? 0 : div_up(bytes, segment));
  return {segment / c.element_bytes, all / n, all};
}

std::unique_ptr<Schedule> make_gloo_ring(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  return std::make_unique<GlooRing>(c);
}

}  // namespace ghostrank
