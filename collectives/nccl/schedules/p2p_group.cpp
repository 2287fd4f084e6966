// Groups of NCCL's sends and receives that differ from pair to pair: all-to-all-v, gather and
// scatter. Rounds, batches, batch slots and channels are those of nccl/schedules/p2p.cpp. Here a
// rank has a list of rounds per channel and batch slot, because the number of an operation's parts
// depends on its size, and in a gather or scatter most pairs have no operation.
//
//   rank 3, channel 0, slot 1     sends in rounds 1, 17, 33    receives in rounds 1, 33
//
// An operation without elements is one empty message, like ncclSend with count 0; callers that omit
// such calls (PyTorch does) send fewer messages. A gather or scatter without elements sends none.
//
// Memory: one number per part of an operation, and one per channel and batch slot of every rank
// that receives. Threading: immutable.
#include <stdexcept>
#include <utility>
#include <vector>

#include "collectives/empty_schedule.h"
#include "collectives/layout.h"
#include "collectives/nccl/schedules/operations.h"

namespace ghostrank {
namespace {

class NcclGroup final : public Schedule {
 public:
  NcclGroup(const Collective& c, NcclOperations operations)
      : Schedule(c, {static_cast<std::uint32_t>(kNcclSteps)}),
        ops_(std::move(operations)),
        layout_(c),
        plans_(c.size) {
    for (GroupRank r = 0; r < c.size; ++r) make_plan(r);
  }

  int actors(GroupRank r) const override { return static_cast<int>(plan(r).work.size()); }
  Actor actor(GroupRank r, int a) const override {
    const SlotWork& work = plan(r).work[a];
    return {work.channel, static_cast<int>(work.rounds.size())};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    const std::vector<std::int32_t>& receivers = plan(dst).receivers;
    if (slot(channel, 0) >= receivers.size() || !has_rank(src)) return actors(dst);  // none
    return receivers[slot(channel, ops_.rounds.round_of(src, dst))];
  }
  int nic(GroupRank from, GroupRank to, int channel, Way way) const override {
    return ops_.nic(from, to, channel, way);
  }
  int nics() const override { return ops_.node.nics; }

 private:
  // The rounds in which a rank sends, or receives, in one batch slot of a channel, in order.
  struct SlotWork {
    int channel = 0;
    bool sends = false;
    std::vector<std::int32_t> rounds;
  };
  struct Plan {
    std::vector<SlotWork> work;
    // Index of the work, by channel and batch slot; -1: none; empty: receives nothing.
    std::vector<std::int32_t> receivers;
  };
  const Plan& plan(GroupRank r) const { return plans_[r]; }
  bool has_rank(GroupRank r) const { return static_cast<std::size_t>(r) < plans_.size(); }
  std::size_t slot(int channel, int round) const {
    return channel * kNcclBatchOps + round % kNcclBatchOps;
  }
  void make_plan(GroupRank r);
  void add(GroupRank r, int round, bool sends, std::vector<std::int32_t>& work_of);
  Block sent(GroupRank from, GroupRank to) const {
    return collective().func == Func::all_to_all_v ? layout_.input(from, to)
           : collective().func == Func::gather     ? layout_.work(from, from)
                                                   : layout_.work(from, to);
  }
  Block received(GroupRank from, GroupRank to) const {
    return layout_.work(to, collective().func == Func::scatter ? to : from);
  }

  NcclOperations ops_;
  Layout layout_;
  std::vector<Plan> plans_;
};

// Starts with round 1, because round 0 is a copy of the rank to itself.
void NcclGroup::make_plan(GroupRank r) {
  const Collective& c = collective();
  const std::size_t slots = ops_.channels.channels * kNcclBatchOps;
  std::vector<std::int32_t> senders(slots, -1), receivers(slots, -1);
  const bool gather = c.func == Func::gather, scatter = c.func == Func::scatter;
  if ((gather || scatter) && r != c.root) {
    const int round = gather ? ops_.rounds.round_of(r, c.root) : ops_.rounds.round_of(c.root, r);
    add(r, round, gather, gather ? senders : receivers);
  } else {
    for (int round = 1; round < c.size; ++round) {
      if (!gather) add(r, round, true, senders);
      if (!scatter) add(r, round, false, receivers);
    }
  }
  const bool receives = gather ? r == c.root : !scatter || r != c.root;
  if (receives) plans_[r].receivers = std::move(receivers);
}

void NcclGroup::add(GroupRank r, int round, bool sends, std::vector<std::int32_t>& work_of) {
  Plan& plan = plans_[r];
  const GroupRank peer = sends ? ops_.rounds.send_to(r, round) : ops_.rounds.recv_from(r, round);
  const std::uint64_t count = (sends ? sent(r, peer) : received(peer, r)).count;
  const NcclP2pSplit split =
      ops_.split(count * collective().element_bytes, ops_.over_network(r, peer));
  const int base = ops_.rounds.base(round, ops_.channels.channels);
  for (int p = 0; p < split.parts; ++p) {
    const int channel = (base + p) % ops_.channels.channels;
    std::int32_t& work = work_of[slot(channel, round)];
    if (work < 0) {
      work = static_cast<std::int32_t>(plan.work.size());
      plan.work.push_back({channel, sends, {}});
    }
    plan.work[work].rounds.push_back(round);
  }
}

Step NcclGroup::step(GroupRank r, int a, int k) const {
  const SlotWork& work = plan(r).work[a];
  const int round = work.rounds[k];
  const GroupRank peer =
      work.sends ? ops_.rounds.send_to(r, round) : ops_.rounds.recv_from(r, round);
  const Block block = work.sends ? sent(r, peer) : received(peer, r);
  const std::uint32_t element_bytes = collective().element_bytes;
  const NcclP2pSplit split = ops_.split(block.count * element_bytes, ops_.over_network(r, peer));
  Step step = nccl_part(block, split, element_bytes, ops_.part_of(round, work.channel));
  (work.sends ? step.send_to : step.recv_from) = peer;
  return step;
}

}  // namespace

std::unique_ptr<Schedule> nccl_p2p_group(NcclVersion version, const Collective& c,
                                         const NcclPlan& plan, const Communicator& comm) {
  if (c.func != Func::all_to_all_v && c.count == 0) return std::make_unique<EmptySchedule>(c);
  return std::make_unique<NcclGroup>(c, NcclOperations(version, plan, comm));
}

}  // namespace ghostrank
