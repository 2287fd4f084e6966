// NCCL's point-to-point operations as schedules: all-to-all, and a single send with its receive.
//
// NCCL cuts every operation into parts, each on a channel of its own. On a channel, the operations
// of up to 8 neighbouring rounds form a batch and run at the same time; the next batch follows.
// Round r is in batch r/8, in batch slot r%8, so a channel has up to 8 batch slots, and every
// batch slot has one actor that sends and one that receives:
//
//   channel 0   slot  0   round 0 (self)   round 128   ...       one after the other
//               slot  1   round 1          round 129
//               ...
//               slot  7   round 7          round 135
//   channel 8   slot  0   round 8          round 136   ...       (nodes of 8, 16 channels)
//
// Approximation: here an operation follows the previous one of its own batch slot, whereas NCCL
// starts a batch after all 16 sends and receives of the previous batch have ended. Sizes, peers,
// channels and the order on every connection are the same; the overlap of neighbouring batches on a
// channel is not. Inside a node NCCL may use LL for small operations; this is left out here,
// because it never enters a network. 2.28 starts the operations of a batch in another order than
// 2.30; no connection sees the difference.
//
// A single send may have a communicator of its two ranks alone (PyTorch's isend outside a batch):
// its channels are those of that communicator.
//
// Messages: one per 128 KiB of a large operation between nodes, 64 or 32 KiB for smaller ones.
#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/nccl/schedules/operations.h"

namespace ghostrank {
namespace {

// Operations of equal size.
struct Operations : NcclOperations {
  NcclP2pSplit inside, outside;  // of an operation inside a node, and of one between nodes

  Operations(NcclVersion version, const Collective& c, const NcclPlan& plan,
             const Communicator& comm)
      : NcclOperations(version, plan, comm),
        inside(split(c.count * c.element_bytes, false)),
        outside(split(c.count * c.element_bytes, true)) {}

  Step part(const Collective& c, GroupRank r, GroupRank peer, int p) const {
    return nccl_part({0, c.count}, over_network(r, peer) ? outside : inside, c.element_bytes, p);
  }
};

class NcclAllToAll final : public Schedule {
 public:
  NcclAllToAll(const Collective& c, Operations operations)
      : Schedule(c, {static_cast<std::uint32_t>(kNcclSteps)}), ops_(std::move(operations)) {
    // Base channels repeat after so many rounds, batches and channels after their common multiple.
    const int repeat = ops_.rounds.rounds_per_base() * ops_.channels.channels;
    period_ = std::lcm(repeat, kNcclBatchOps) / kNcclBatchOps;
    std::array<int, kNcclBatchOps> none;
    none.fill(-1);
    index_.assign(ops_.channels.channels, none);
    if (c.size < 2) return;
    for (int channel = 0; channel < ops_.channels.channels; ++channel)
      for (int batch_slot = 0; batch_slot < kNcclBatchOps; ++batch_slot)
        add_slot(channel, batch_slot);
  }

  int actors(GroupRank) const override { return 2 * static_cast<int>(work_.size()); }
  Actor actor(GroupRank, int a) const override {
    const SlotWork& work = work_[a / 2];
    return {work.channel, work.steps};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    if (static_cast<std::size_t>(channel) >= index_.size() || src < 0 || src >= collective().size)
      return actors(dst);  // none
    const int batch_slot = ops_.rounds.round_of(src, dst) % kNcclBatchOps;
    return 2 * index_[channel][batch_slot] + 1;
  }
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    return ops_.nic(from, to, channel, way);
  }
  int nics() const override { return ops_.node.nics; }

 private:
  // A batch slot of a channel, and the batches, modulo the period, in which it has an operation.
  struct SlotWork {
    int channel = 0, batch_slot = 0, steps = 0;
    std::vector<int> batches;
  };
  void add_slot(int channel, int batch_slot);

  Operations ops_;
  int period_ = 1;  // number of batches after which the rounds use the same channels again
  std::vector<SlotWork> work_;
  std::vector<std::array<int, kNcclBatchOps>>
      index_;  // index of the work, by channel and batch slot; -1: none
};

void NcclAllToAll::add_slot(int channel, int batch_slot) {
  SlotWork work{channel, batch_slot, 0, {}};
  for (int batch = 0; batch < period_; ++batch)
    if (ops_.part_of(kNcclBatchOps * batch + batch_slot, channel) < ops_.outside.parts)
      work.batches.push_back(batch);
  const int batches = (collective().size - batch_slot + kNcclBatchOps - 1) / kNcclBatchOps;
  const auto in_last_period = std::count_if(work.batches.begin(), work.batches.end(),
                                            [&](int b) { return b < batches % period_; });
  work.steps =
      batches / period_ * static_cast<int>(work.batches.size()) + static_cast<int>(in_last_period);
  if (work.steps <= 0) return;
  index_[channel][batch_slot] = static_cast<int>(work_.size());
  work_.push_back(std::move(work));
}

Step NcclAllToAll::step(GroupRank r, int a, int k) const {
  const SlotWork& work = work_[a / 2];
  const auto per_period = static_cast<int>(work.batches.size());
  const int batch = k / per_period * period_ + work.batches[k % per_period];
  const int round = kNcclBatchOps * batch + work.batch_slot;
  if (round == 0) return {};  // to itself: a copy, which the player of the schedule makes
  const bool sends = a % 2 == 0;
  const GroupRank peer = sends ? ops_.rounds.send_to(r, round) : ops_.rounds.recv_from(r, round);
  const Collective& c = collective();
  Step step = ops_.part(c, r, peer, ops_.part_of(round, work.channel));
  (sends ? step.send_to : step.recv_from) = peer;
  step.send.offset += peer * c.count;
  step.recv.offset = step.send.offset;
  step.send.buffer = Buffer::input;
  return step;
}

// One actor per part on both ranks. `from` and `to`: their numbers in the communicator of the
// operations.
class NcclSendRecv final : public Schedule {
 public:
  NcclSendRecv(const Collective& c, Operations operations, GroupRank from, GroupRank to)
      : Schedule(c, {static_cast<std::uint32_t>(kNcclSteps)}), ops_(std::move(operations)) {
    split_.parts = 0;
    if (c.size < 2) return;
    split_ = ops_.over_network(from, to) ? ops_.outside : ops_.inside;
    base_ = ops_.rounds.base(ops_.rounds.round_of(from, to), ops_.channels.channels);
  }
  int actors(GroupRank r) const override {
    return r == collective().root || r == collective().target ? split_.parts : 0;
  }
  Actor actor(GroupRank, int a) const override { return {(base_ + a) % ops_.channels.channels, 1}; }
  Step step(GroupRank r, int a, int) const override {
    const bool sends = r == collective().root;
    Step step = nccl_part({0, collective().count}, split_, collective().element_bytes, a);
    (sends ? step.send_to : step.recv_from) = sends ? collective().target : collective().root;
    return step;
  }
  int receiver(GroupRank dst, int channel, GroupRank) const override {
    if (channel < 0 || channel >= ops_.channels.channels) return actors(dst);  // none
    return (channel - base_ + ops_.channels.channels) % ops_.channels.channels;
  }
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    if (!collective().pair) return ops_.nic(from, to, channel, way);
    return std::max(kOwnNic, ops_.nic_in_turn(1, 0, channel));  // a pair knows no other rail
  }
  int nics() const override { return ops_.node.nics; }

 private:
  Operations ops_;
  NcclP2pSplit split_{};
  int base_ = 0;
};

// The call as the communicator of its two ranks alone sees it.
Collective between_two(const Collective& c) {
  Collective two = c;
  two.size = 2;
  two.root = c.root < c.target ? 0 : 1;
  two.target = 1 - two.root;
  return two;
}

}  // namespace

std::unique_ptr<Schedule> nccl_p2p(NcclVersion version, const Collective& c,
                                   const Communicator& comm) {
  if (comm.protocol.value_or(Protocol::simple) != Protocol::simple)
    throw std::invalid_argument(
        "NCCL's sends and receives between nodes use the protocol Simple; leave out another "
        "protocol");
  const Collective planned = c.pair ? between_two(c) : c;
  const NcclPlan plan = nccl_plan(version, NcclAlgorithm::ring, planned, comm);
  switch (c.func) {
    case Func::all_to_all:
      return std::make_unique<NcclAllToAll>(c, Operations(version, c, plan, comm));
    case Func::send_recv:
      return std::make_unique<NcclSendRecv>(c, Operations(version, c, plan, comm), planned.root,
                                            planned.target);
    case Func::all_to_all_v:
    case Func::gather:
    case Func::scatter:
      return nccl_p2p_group(version, c, plan, comm);
    default:
      break;
  }
  throw std::invalid_argument(std::string(name_of(c.func)) + " is no point-to-point operation");
}

}  // namespace ghostrank
