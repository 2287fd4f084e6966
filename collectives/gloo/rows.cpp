// The rows of the library "gloo": the schedule of each function and its closed-form cost. The
// communicator's channels, slices and credits do not apply, because gloo has its own.
//
// In the formulas for people, n is the number of ranks, S the bytes of `count` elements, s the
// number of segments per rank (gloo.h), m the largest power of two <= n, x = n - m, T the bytes of
// all `counts`.
#include <algorithm>
#include <array>

#include "collectives/common/powers.h"
#include "collectives/cost_terms.h"
#include "collectives/generic/generic.h"
#include "collectives/generic/trees.h"
#include "collectives/gloo/gloo.h"
#include "collectives/libraries.h"

namespace ghostrank {
namespace {

int no_rounds(const ChannelView&, int) { return 0; }
constexpr Form kNothing{.rounds = no_rounds};

// Number of steps whose receives are posted ahead.
constexpr int kNext = 1;          // the next step's
constexpr int kOfEveryPeer = -1;  // all; an all-to-all posts send i, then receive i

// A textbook form with gloo's permissions; one channel, no slices.
std::unique_ptr<Schedule> posted(const Form& form, Posting posting, const Collective& c,
                                 const Communicator& comm) {
  check_arguments(c, comm);
  if (posting.receives == kOfEveryPeer) posting.receives = c.size - 1;
  return std::make_unique<Textbook>(form, c, Communicator{.flow_control = {.posting = posting}});
}

template <const Form& kForm, int kReceives>
std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  return posted(kForm, {.receives = kReceives}, c, comm);
}

std::unique_ptr<Schedule> make_barrier(const Collective& c, const Communicator& comm) {
  return posted(kDisseminationBarrier, {.receives = kNext, .sends = 1, .receives_first = true}, c,
                comm);
}

// One operation in flight; no messages at all if all blocks are empty.
std::unique_ptr<Schedule> make_all_gather_v(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  return posted(all_counts(c) == 0 ? kNothing : kRingAllGatherV, {.receives = kNext, .sends = 1}, c,
                comm);
}

bool nothing_sent(const Collective& c) { return c.size == 1 || c.count == 0; }

// Segments that do not lie beyond the end of the buffer.
std::uint64_t filled(const Collective& c, const GlooSegments& cut) {
  return (c.count + cut.elements - 1) / cut.elements;
}

Cost all_reduce(const Collective& c) {
  if (nothing_sent(c)) return {};
  const GlooSegments cut = gloo_all_reduce_segments(c);
  const std::uint64_t others = ranks(c) - 1;
  return {static_cast<int>(2 * others * cut.per_rank), 2 * others * bytes(c),
          2 * others * filled(c, cut), filled(c, cut) < cut.all};
}

// Per block: its nonempty windows, once forth and once back, and the notifications. Per pair of
// neighbouring blocks: the larger block's windows, which wait for one another at the smaller block.
Cost halving_doubling(const Collective& c) {
  if (nothing_sent(c)) return {};
  const GlooHalvingCut cut = gloo_halving_cut(c);
  const auto filled_windows = [&](std::uint64_t of) {
    const std::uint64_t elements = cut.elements * (cut.chunks / of);
    return (c.count + elements - 1) / elements;
  };
  std::uint64_t windows = 0, notifications = 0, waits = 0, larger = 0;
  for (std::uint64_t block = cut.chunks; block > 0; block /= 2) {
    if ((ranks(c) & block) == 0) continue;
    for (std::uint64_t of = 2; of <= block; of *= 2) {
      windows += filled_windows(of) * (block / of);
      notifications += 2 * block;
    }
    if (larger > 0) {
      windows += filled_windows(larger);
      waits += larger / block;
    }
    larger = block;
  }
  const std::uint64_t elements = 2 * (ranks(c) - 1) * c.count + notifications * cut.notification;
  return {5 * ceil_log2(static_cast<int>(cut.chunks)) - 1 + static_cast<int>(waits),
          elements * c.element_bytes, 2 * windows + notifications, waits > 0};
}

// The reduce-scatter, the s-2 iterations after it, and the chunks sent to the root.
Cost reduce(const Collective& c) {
  if (nothing_sent(c)) return {};
  const GlooSegments cut = gloo_reduce_segments(c);
  const std::uint64_t n = ranks(c), full = filled(c, cut), root = c.root;
  const auto elements_before = [&](std::uint64_t segment) {
    return std::min(c.count, segment * cut.elements);
  };
  std::uint64_t elements = (n - 1) * c.count, messages = (n - 1) * full;
  for (std::uint64_t r = 0; r < n; ++r) {
    const std::uint64_t first = r * cut.per_rank, beyond = first + cut.per_rank - 2;
    elements += elements_before(beyond) - elements_before(first);
    messages += std::min(full, beyond) - std::min(full, first);
    if (r == root) continue;
    elements += elements_before(first + cut.per_rank) - elements_before(first);
    messages += first < full ? 1 : 0;
  }
  return {static_cast<int>(cut.all - 2 + n - 1), elements * c.element_bytes, messages,
          full < cut.all};
}

Cost all_gather(const Collective& c) {
  if (nothing_sent(c)) return {};
  const std::uint64_t n = ranks(c);
  return {2 * (c.size - 1), n * (n - 1) * bytes(c), 2 * n * (n - 1)};
}

Cost broadcast(const Collective& c) {
  return {ceil_log2(c.size), (ranks(c) - 1) * bytes(c), ranks(c) - 1};
}

Cost direct(const Collective& c) { return {c.size - 1, (ranks(c) - 1) * bytes(c), ranks(c) - 1}; }

Cost all_to_all(const Collective& c) {
  const std::uint64_t n = ranks(c);
  return {c.size - 1, n * (n - 1) * bytes(c), n * (n - 1)};
}

Cost all_gather_v(const Collective& c) {
  const std::uint64_t n = ranks(c), bytes_sent = (n - 1) * all_counts(c) * c.element_bytes;
  if (all_counts(c) == 0) return {};
  return {c.size - 1, bytes_sent, n * (n - 1)};
}

Cost all_to_all_v(const Collective& c) {
  const std::uint64_t n = ranks(c);
  std::uint64_t elements = all_counts(c);
  for (std::uint64_t r = 0; r < n; ++r) elements -= (*c.counts)[r * n + r];
  return {c.size - 1, elements * c.element_bytes, n * (n - 1)};
}

Cost barrier(const Collective& c) {
  const int rounds = ceil_log2(c.size);
  return {rounds, 0, ranks(c) * rounds};
}

Cost send_recv(const Collective& c) {
  if (c.size == 1) return {};
  return {1, bytes(c), 1};
}

const std::array kRows{
    Algorithm{"gloo", Func::all_reduce, "ring", "2(n-1) s", "2(n-1) S", make_gloo_ring, all_reduce},
    Algorithm{"gloo", Func::all_reduce, "halving_doubling", "5 log2 m - 1 (more if x>0)",
              "2(n-1) S and notifications", make_gloo_halving, halving_doubling},
    Algorithm{"gloo", Func::all_gather, "ring", "2(n-1)", "n(n-1) S", make_gloo_ring, all_gather},
    Algorithm{"gloo", Func::broadcast, "binomial", "ceil(log2 n)", "(n-1) S",
              make<kNearestFirstBroadcast, kNext>, broadcast},
    Algorithm{"gloo", Func::reduce, "ring", "n s - 2 + n-1",
              "(n-1) S and S without the root's part", make_gloo_ring, reduce},
    Algorithm{"gloo", Func::all_to_all, "linear", "n-1", "n(n-1) S",
              make<kLinearAllToAll, kOfEveryPeer>, all_to_all},
    Algorithm{"gloo", Func::send_recv, "direct", "1", "S", make<kSendRecv, kNext>, send_recv},
    Algorithm{"gloo", Func::barrier, "dissemination", "ceil(log2 n)", "0", make_barrier, barrier},
    Algorithm{"gloo", Func::gather, "linear", "n-1", "(n-1) S", make<kLinearGather, kOfEveryPeer>,
              direct},
    Algorithm{"gloo", Func::scatter, "linear", "n-1", "(n-1) S", make<kLinearScatter, kNext>,
              direct},
    Algorithm{"gloo", Func::all_gather_v, "ring", "n-1", "(n-1) T", make_all_gather_v,
              all_gather_v},
    Algorithm{"gloo", Func::all_to_all_v, "linear", "n-1", "T - own",
              make<kLinearAllToAll, kOfEveryPeer>, all_to_all_v},
};

}  // namespace

std::span<const Algorithm> gloo_rows() { return kRows; }

}  // namespace ghostrank
