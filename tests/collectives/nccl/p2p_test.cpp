// NCCL's point-to-point operations, proved by the checker and compared with their channels.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/machine/templates.h"
#include "collectives/nccl/schedules/p2p_split.h"
#include "collectives/schedule.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

TEST(NcclP2p, AllToAllIsRight) {
  for (const char* library : kLibraries)
    for (int size = 1; size <= 24; ++size)
      for (const int per_node : {1, 2, 4, 8, 24}) {
        if (size % per_node != 0 && size > per_node) continue;
        for (const std::uint64_t count : {0, 1, 77}) {
          Communicator comm = communicator(16);
          comm.node_of = nodes_of(size, per_node);
          prove(library, "p2p", {Func::all_to_all, size, count, 4, 0}, comm);
          if (HasFailure()) return;
        }
      }
}

TEST(NcclP2p, AllToAllIsRightInSeveralPartsAndMessages) {
  for (const char* library : kLibraries)
    for (const int size : {2, 3, 4})
      for (const int per_node : {1, 2})
        for (const std::uint64_t count : {100'000, 300'001}) {
          Communicator comm = communicator(16);
          comm.node = "hgx-h100-400g";
          comm.node_of = nodes_of(size, per_node);
          prove(library, "p2p", {Func::all_to_all, size, count, 1, 0}, comm);
        }
}

TEST(NcclP2p, AllToAllIsRightOnUnequalNodesAndFewChannels) {
  for (const int channels : {1, 2, 4}) {
    Communicator comm = communicator(channels);
    comm.node_of = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3};
    prove("nccl-2.30", "p2p", {Func::all_to_all, 12, 50, 8, 0}, comm);
    comm.node_of = {0, 1, 0, 1, 2, 2, 0, 1, 2, 1, 0, 2};
    prove("nccl-2.30", "p2p", {Func::all_to_all, 12, 50, 8, 0}, comm);
  }
}

// Rounds per base channel x channels need neither divide a batch (8 rounds) nor be a multiple.
TEST(NcclP2p, AllToAllIsRightForGroupsOfEverySize) {
  for (int group = 1; group <= 8; ++group)
    for (const int channels : {1, 2, 4, 8}) {
      Communicator comm = communicator(channels);
      comm.environment = {{"NCCL_P2P_SCHEDULE_GROUP_SIZE", std::to_string(group)}};
      const int size = 2 * group * std::max(2, channels);  // the channels repeat
      comm.node_of = nodes_of(size, group);
      prove("nccl-2.30", "p2p", {Func::all_to_all, size, 1, 4, 0}, comm);
      if (HasFailure()) return;
    }
}

TEST(NcclP2p, KeepsAnEmptyMessagePerPeer) {
  EXPECT_EQ(prove("nccl-2.30", "p2p", {Func::all_to_all, 5, 0, 4, 0}, communicator(4)).messages,
            20U);
}

TEST(NcclP2p, PutsTheRoundsOfANodeOfEightOnOneChannel) {
  Communicator comm = communicator(16);
  comm.node_of = nodes_of(32, 8);
  const Collective c{Func::all_to_all, 32, 64, 4, 0};
  const auto schedule = find_algorithm("nccl-2.30", c.func, "p2p")->make(c, comm);
  ASSERT_EQ(schedule->actors(3), 2 * 32);  // four channels, eight batch slots each
  std::map<int, std::set<int>> nodes_by_channel;
  for (int a = 0; a < schedule->actors(3); a += 2) {
    ASSERT_EQ(schedule->actor(3, a).steps, 1);
    const Step step = schedule->step(3, a, 0);
    if (!step.send_to.empty())
      nodes_by_channel[schedule->actor(3, a).channel].insert(step.send_to[0] / 8);
  }
  EXPECT_EQ(nodes_by_channel,
            (std::map<int, std::set<int>>{{0, {0}}, {8, {1}}, {4, {3}}, {12, {2}}}));
}

TEST(NcclP2p, SendRecvIsRight) {
  for (const char* library : kLibraries)
    for (const int per_node : {1, 2, 4})
      for (const std::uint64_t count : {0, 1, 100'000, 3'000'000}) {
        Communicator comm = communicator(16);
        comm.node = "hgx-h100-400g";
        comm.node_of = nodes_of(4, per_node);
        prove(library, "p2p", {Func::send_recv, 4, count, 1, 0}, comm);
      }
  EXPECT_EQ(prove("nccl-2.30", "p2p", {Func::send_recv, 1, 5, 4, 0}, communicator(1)).messages, 0U);
}

// Some blocks have many parts, some one, and some are empty.
TEST(NcclP2p, AllToAllVIsRightForBlocksOfAllSizes) {
  for (const char* library : kLibraries)
    for (int size = 1; size <= 24; ++size)
      for (const int per_node : {1, 2, 4, 8, 24}) {
        if (size % per_node != 0 && size > per_node) continue;
        for (const std::uint64_t count : {0, 77, 200'001}) {
          if (count > 1000 && size > 4) continue;
          Communicator comm = communicator(16);
          comm.node = count > 1000 ? "hgx-h100-400g" : "auto";
          comm.node_of = nodes_of(size, per_node);
          prove(library, "p2p", testing::call(Func::all_to_all_v, size, count, 0, 1), comm);
          if (HasFailure()) return;
        }
      }
}

// With equal counts, a group of sends and receives equals the all-to-all.
TEST(NcclP2p, AllToAllVOfEqualBlocksSendsWhatAnAllToAllSends) {
  for (const int per_node : {1, 4}) {
    Communicator comm = communicator(16);
    comm.node = "hgx-h100-400g";
    comm.node_of = nodes_of(8, per_node);
    const Collective equal{Func::all_to_all, 8, 90'000, 1, 0};
    Collective ragged = equal;
    ragged.func = Func::all_to_all_v;
    ragged.counts = std::make_shared<const std::vector<std::uint64_t>>(64, 90'000);
    const auto sent = [&](const Collective& c) {
      const auto schedule = find_algorithm("nccl-2.30", c.func, "p2p")->make(c, comm);
      std::map<std::pair<int, GroupRank>, std::vector<Block>> by_connection;
      for (int a = 0; a < schedule->actors(3); ++a)
        for (int k = 0; k < schedule->actor(3, a).steps; ++k) {
          const Step step = schedule->step(3, a, k);
          for (const GroupRank peer : step.send_to)
            for (std::uint32_t slice = 0; slice < step.slices; ++slice)
              by_connection[{schedule->actor(3, a).channel, peer}].push_back(
                  slice_of(step.send, step, slice));
        }
      return by_connection;
    };
    EXPECT_EQ(sent(equal), sent(ragged)) << per_node;
  }
}

// By channel: (offset from `origin`, count) of each message that rank `from` sends to rank `to`.
using ByChannel = std::map<int, std::vector<std::pair<std::uint64_t, std::uint64_t>>>;
ByChannel sent_to(const Schedule& schedule, GroupRank from, GroupRank to, std::uint64_t origin) {
  ByChannel out;
  for (int a = 0; a < schedule.actors(from); ++a)
    for (int k = 0; k < schedule.actor(from, a).steps; ++k) {
      const Step step = schedule.step(from, a, k);
      if (step.send_to.empty() || step.send_to[0] != to) continue;
      for (std::uint32_t s = 0; s < step.slices; ++s) {
        const Block block = slice_of(step.send, step, s);
        out[schedule.actor(from, a).channel].emplace_back(block.offset - origin, block.count);
      }
    }
  return out;
}

// NCCL plans the operations of one ncclGroup together, but an operation's channels and messages do
// not depend on the other operations of the group.
TEST(NcclP2p, AGroupOfOperationsSendsWhatTheySendAlone) {
  for (const char* library : kLibraries)
    for (const int per_node : {1, 4, 8})
      for (const std::uint64_t count : {1'000, 300'000, 2'000'000}) {
        Communicator comm = communicator(16);
        comm.node = "hgx-h100-400g";
        comm.node_of = nodes_of(8, per_node);
        const Collective group{Func::all_to_all, 8, count, 1, 0};
        const auto together = find_algorithm(library, group.func, "p2p")->make(group, comm);
        for (const GroupRank from : {0, 3})
          for (GroupRank to = 0; to < 8; ++to) {
            if (to == from) continue;
            Collective one{Func::send_recv, 8, count, 1, from};
            one.target = to;
            const auto alone = find_algorithm(library, one.func, "p2p")->make(one, comm);
            const ByChannel sent = sent_to(*alone, from, to, 0);
            EXPECT_FALSE(sent.empty());
            EXPECT_EQ(sent_to(*together, from, to, static_cast<std::uint64_t>(to) * count), sent)
                << library << " " << per_node << " " << count << " " << from << " " << to;
          }
      }
}

// PyTorch's isend outside a batch has a communicator of 2 ranks, and so more channels per peer.
TEST(NcclP2p, APairHasTheChannelsOfACommunicatorOfTwo) {
  Communicator group = communicator(0);
  group.channels = 0;
  group.protocol.reset();
  group.node = "hgx-h100-400g";
  group.node_of = nodes_of(16, 1);
  Communicator two = group;
  two.node_of = {0, 1};
  for (const auto& [root, target] : {std::pair(3, 4), std::pair(4, 3), std::pair(15, 0)}) {
    Collective c{Func::send_recv, 16, 6 << 20, 1, root};
    c.target = target;
    const auto parts = [&](const Communicator& comm, const char* library) {
      const auto schedule = find_algorithm(library, c.func, "p2p")->make(c, comm);
      Collective few = c;  // symbols for every element are dear
      few.count = 1000;
      EXPECT_TRUE(check(*find_algorithm(library, c.func, "p2p")->make(few, comm)).ok);
      EXPECT_EQ(schedule->actors(root), schedule->actors(target));
      return schedule->actors(root);
    };
    EXPECT_EQ(parts(group, "nccl-2.28"), 1);
    EXPECT_EQ(parts(group, "nccl-2.30"), 2);
    c.pair = true;
    EXPECT_EQ(parts(two, "nccl-2.28"), 2);
    EXPECT_EQ(parts(two, "nccl-2.30"), 4);
  }
}

TEST(NcclP2p, AllToAllVKeepsAnEmptyMessageForAnEmptyBlock) {
  const Collective c = testing::call(Func::all_to_all_v, 5, 10);
  EXPECT_EQ(prove("nccl-2.30", "p2p", c, communicator(4)).messages, 20U);
}

TEST(NcclP2p, GatherAndScatterAreRightFromEveryRoot) {
  for (const char* library : kLibraries)
    for (const Func func : {Func::gather, Func::scatter})
      for (const int size : {1, 2, 3, 7, 8, 16, 24})
        for (const std::uint64_t count : {0, 1, 300'000}) {
          if (count > 1000 && size > 3) continue;
          for (GroupRank root = 0; root < size; ++root) {
            Communicator comm = communicator(16);
            comm.node_of = nodes_of(size, size % 8 == 0 ? 8 : 1);
            const CheckReport report = prove(library, "p2p", {func, size, count, 1, root}, comm);
            if (count < 1000) {
              EXPECT_EQ(report.messages, count * static_cast<std::uint64_t>(size - 1));
            }
            if (HasFailure()) return;
          }
        }
}

TEST(NcclP2p, GivesAPeerAsManyChannelsAsItsNicNeedsAndTheGroupLeaves) {
  const auto channels = [](NcclVersion version, int nodes) {
    const NcclNodes layout(8 * nodes, nodes_of(8 * nodes, 8));
    return nccl_p2p_channels(version, nccl_node("hgx-h100-400g", 8), layout, 16).max_per_peer;
  };
  EXPECT_EQ(channels(NcclVersion::v2_30, 2), 4);
  EXPECT_EQ(channels(NcclVersion::v2_30, 8), 2);
  EXPECT_EQ(channels(NcclVersion::v2_30, 16), 1);
  EXPECT_EQ(channels(NcclVersion::v2_28, 2), 2);
  EXPECT_EQ(channels(NcclVersion::v2_28, 4), 2);
  EXPECT_EQ(channels(NcclVersion::v2_28, 8), 1);
}

// As in a recorded log (tests/nccl_trace/recorded/own): channel 1 to rank 3 uses NIC 1, channel 2
// uses NIC 0.
TEST(NcclP2p, SendsThroughTheNicsOfAGpuInTurn) {
  NcclMachine machine = nccl_template("one-gpu");
  machine.nics = {{.up = {}, .asic = 1}, {.up = {}, .asic = 2}};
  Communicator comm = communicator(4);
  comm.machine = std::make_shared<const NcclMachine>(machine);
  for (const Func func : {Func::all_to_all, Func::send_recv, Func::all_to_all_v}) {
    Collective call{func, 4, 1000};
    if (is_ragged(func)) call.counts = std::make_shared<const std::vector<std::uint64_t>>(16, 1000);
    const auto schedule = find_algorithm("nccl-2.28", func, "p2p")->make(call, comm);
    EXPECT_EQ(schedule->nics(), 2);
    for (int channel = 0; channel < 4; ++channel)
      for (const Way way : {Way::send, Way::recv})
        EXPECT_EQ(schedule->nic(0, 3, channel, way), channel % 2) << name_of(func);
    call.pair = func == Func::send_recv;
    if (call.pair) {
      comm.node_of = {0, 1};
      const auto pair = find_algorithm("nccl-2.28", func, "p2p")->make(call, comm);
      EXPECT_EQ(pair->nic(0, 1, 3, Way::send), 1);
      comm.node_of.clear();
    }
  }
}

// Two GPUs of an A100 node share two NICs. A GPU that is alone on its node uses both: its own, and
// its neighbour's, which is named by number because no GPU of the communicator has it.
TEST(NcclP2p, SendsThroughTheNeighboursNicWhereTheNeighbourIsAway) {
  const auto nic = [](int per_node, int channel) {
    Communicator comm = communicator(4);
    comm.node = "dgx-a100";
    comm.node_of = nodes_of(4 * per_node, per_node);
    const auto schedule = find_algorithm("nccl-2.28", Func::all_to_all, "p2p")
                              ->make({Func::all_to_all, 4 * per_node, 1000}, comm);
    return schedule->nic(0, per_node, channel, Way::recv);
  };
  EXPECT_EQ(nic(1, 0), Schedule::nic_of(1));
  EXPECT_EQ(nic(1, 1), 1);
  EXPECT_EQ(nic(8, 0), Schedule::kOwnNic);
  EXPECT_EQ(nic(8, 1), Schedule::kOwnNic);
}

// Nodes of eight and four. The second has, by its numbers, GPUs 0 to 3 or 4 to 7.
TEST(NcclP2p, LeavesByTheReceiversRailWhereTheSendersNodeHasIt) {
  for (const Func func : {Func::all_to_all, Func::send_recv, Func::all_to_all_v})
    for (const bool numbered : {false, true}) {
      Communicator comm = communicator(16);
      comm.node = "hgx-h100-400g";
      comm.node_of = nodes_of(12, 8);
      if (numbered) comm.gpu_of = {0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7};
      Collective call{func, 12, 1000};
      if (is_ragged(func))
        call.counts = std::make_shared<const std::vector<std::uint64_t>>(144, 1000);
      const auto schedule = find_algorithm("nccl-2.28", func, "p2p")->make(call, comm);
      const auto leaves = [&](GroupRank from, GroupRank to) {
        const int nic = schedule->nic(from, to, 0, Way::send);
        return nic == Schedule::kOwnNic ? from : Schedule::rank_beside(nic);
      };
      const int first = numbered ? 4 : 0;
      for (GroupRank from = 0; from < 8; ++from)
        for (GroupRank to = 8; to < 12; ++to) {
          EXPECT_EQ(leaves(from, to), first + to - 8) << name_of(func);
          const int rail = from - first;
          EXPECT_EQ(leaves(to, from), rail >= 0 && rail < 4 ? 8 + rail : to) << name_of(func);
          EXPECT_EQ(schedule->nic(from, to, 0, Way::recv), Schedule::kOwnNic);
        }
    }
}

TEST(NcclP2p, CountsWholeGigabytesOfAllNicsOfAGpu) {
  const auto channels = [](double nic_GBps, int nics) {
    NcclNode node;
    node.nic_GBps = nic_GBps;
    node.nics_per_gpu = nics;
    return nccl_p2p_channels(NcclVersion::v2_30, node, NcclNodes(2, {}), 16).max_per_peer;
  };
  EXPECT_EQ(channels(28, 1), 2);  // 14 GB/s per channel
  EXPECT_EQ(channels(28.9, 1), 2);
  EXPECT_EQ(channels(29, 1), 4);
  EXPECT_EQ(channels(28, 2), 4);
  EXPECT_EQ(channels(4, 2), 2);  // at least one per NIC
}

}  // namespace
}  // namespace ghostrank
