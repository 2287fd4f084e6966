#include "collectives/schemes/blink.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "collectives/generic/textbook.h"
#include "collectives/schemes/blink/trees.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kChunksAHop = 20, kLeastChunkBytes = 64 << 10;
constexpr std::uint32_t kInFlight = 2;  // chunks of a connection

int groups_of(int peers) { return (peers + kMaxPeers - 1) / kMaxPeers; }

// Actor 2t goes up tree t, and at the root of an all-reduce it also starts the way down; actor 2t+1
// goes down. For each chunk an actor has as many steps as its peers on either side need.
class Blink final : public Schedule {
 public:
  Blink(const Collective& c, const Communicator& comm)
      : Schedule(c, paced(comm.flow_control)), trees_(c, comm), chunks_(chunks(comm)) {}

  int actors(GroupRank) const override { return 2 * trees_.size(); }
  Actor actor(GroupRank r, int a) const override {
    return {a / 2, plays(r, a) ? chunks_ * steps_of(r, a) : 0};
  }
  Step step(GroupRank r, int a, int k) const override;
  StepOf dependency(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    if (channel < 0 || channel >= trees_.size()) return -1;  // as a stranger's message may say
    return 2 * channel + (trees_.parent(channel, dst) == src ? 1 : 0);
  }

 private:
  static FlowControl paced(FlowControl given) {
    if (given.credits == 0) given.credits = kInFlight;
    return given;
  }
  static bool down(int a) { return a % 2 == 1; }
  bool is_root(GroupRank r, int a) const { return trees_.parent(a / 2, r) == kNoRank; }
  bool turns(GroupRank r, int a) const {  // at the root, from up to down
    return collective().func == Func::all_reduce && !down(a) && is_root(r, a);
  }
  bool plays(GroupRank r, int a) const {
    if (collective().func == Func::all_reduce) return !down(a) || !is_root(r, a);
    return down(a) == (collective().func == Func::broadcast);
  }
  // Whether the rank has all of the tree's share from the start, and sends it as it likes.
  bool is_source(GroupRank r, int a) const {
    return plays(r, a) && (down(a) ? is_root(r, a) : trees_.children(a / 2, r) == 0);
  }
  int receiving_steps(GroupRank r, int a) const {
    return down(a) ? 1 : std::max(1, groups_of(trees_.children(a / 2, r)));
  }
  int steps_of(GroupRank r, int a) const {
    const int sending =
        down(a) || turns(r, a) ? std::max(1, groups_of(trees_.children(a / 2, r))) : 1;
    return receiving_steps(r, a) + sending - 1;
  }
  Peers children(GroupRank r, int a, int group) const {
    Peers out;
    const int end = std::min(trees_.children(a / 2, r), (group + 1) * kMaxPeers);
    for (int i = group * kMaxPeers; i < end; ++i) out.push(trees_.child(a / 2, r, i));
    return out;
  }
  int chunks(const Communicator& comm) const;

  BlinkTrees trees_;
  int chunks_;
};

int Blink::chunks(const Communicator& comm) const {
  std::uint64_t most = 0;
  for (int t = 0; t < trees_.size(); ++t) most = std::max(most, trees_.share(t).count);
  most *= collective().element_bytes;
  const auto cut = [&](std::uint64_t bytes) {
    return std::max<std::uint64_t>(1, (most + bytes - 1) / bytes);
  };
  const int links = trees_.depth() * (collective().func == Func::all_reduce ? 2 : 1);
  const std::uint64_t chunks =
      comm.slice_bytes > 0
          ? cut(std::max<std::uint64_t>(comm.slice_bytes, collective().element_bytes))
          : std::min(cut(kLeastChunkBytes), kChunksAHop * std::max(1, links - 1));
  if (chunks > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) /
                   static_cast<std::uint64_t>(collective().size + 1))
    throw std::invalid_argument("slices are too small to count; raise their size");
  return static_cast<int>(chunks);
}

Step Blink::step(GroupRank r, int a, int k) const {
  const int each = steps_of(r, a), receiving = receiving_steps(r, a), i = k % each;
  const Block& share = trees_.share(a / 2);
  Block chunk = near_equal(share.count, k / each, chunks_);
  chunk.offset += share.offset;
  Step step;
  step.recv = step.send = chunk;
  if (!down(a)) step.on_recv = Combine::reduce;
  if (i < receiving) step.recv_from = down(a) ? Peers(trees_.parent(a / 2, r)) : children(r, a, i);
  if (i >= receiving - 1)
    step.send_to =
        down(a) || turns(r, a) ? children(r, a, i - receiving + 1) : Peers(trees_.parent(a / 2, r));
  if (i == 0 && is_source(r, a)) {
    const StepOf before = dependency(r, a, k);
    step.depends = before.actor != a && before.step >= 0;
  }
  return step;
}

// A rank that has several trees' shares sends a chunk of each in turn, so that links which trees
// share serve all of them.
StepOf Blink::dependency(GroupRank r, int a, int k) const {
  const int chunk = k / steps_of(r, a);
  const auto source_below = [&](int actor) {
    while (actor >= 0 && !is_source(r, actor)) actor -= 2;
    return actor;
  };
  int before = source_below(a - 2), of_chunk = chunk;
  if (before < 0) {
    before = source_below(2 * (trees_.size() - 1) + a % 2);
    --of_chunk;
  }
  return {before, (of_chunk + 1) * steps_of(r, before) - 1};
}

}  // namespace

std::unique_ptr<Schedule> make_blink(const Collective& c, const Communicator& comm) {
  check_arguments(c, comm);
  return std::make_unique<Blink>(c, comm);
}

}  // namespace ghostrank
