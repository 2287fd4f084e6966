// NCCL's rings, proved by the checker over sizes, nodes, protocols and counts, and compared with
// known figures of their traffic.
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/machine/templates.h"
#include "collectives/nccl/nccl.h"
#include "collectives/schedule.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

TEST(NcclRing, IsRightOnSingleGpuNodes) {
  for (const char* library : kLibraries)
    for (const Func func : kRingFuncs)
      for (int size = 1; size <= 33; size += size < 9 ? 1 : 4)
        for (const Protocol protocol : kProtocols)
          for (const std::uint64_t count : {0, 1, 31, 1000})
            for (const int channels : {1, 4, 16}) {
              prove(library, "ring", {func, size, count, 4, size / 2},
                    communicator(channels, protocol));
              if (HasFailure()) return;
            }
}

TEST(NcclRing, IsRightForTypesOfEverySize) {
  for (const Func func : kRingFuncs)
    for (const std::uint32_t element_bytes : {1U, 2U, 4U, 8U})
      for (const Protocol protocol : kProtocols)
        for (const std::uint64_t count : {7, 4099})
          prove("nccl-2.30", "ring", {func, 3, count, element_bytes, 2}, communicator(2, protocol));
}

TEST(NcclRing, IsRightOverManyLoopsAndRaggedEnds) {
  // 4 steps, in elements: 1 chunk (2 MiB with Simple) to 4 chunks (32 KiB each with LL).
  for (const Func func : kRingFuncs)
    for (const Protocol protocol : kProtocols)
      for (const int size : {2, 3}) {
        const std::uint64_t chunk = nccl_step_bytes(protocol) * 4 / 8;
        for (const std::uint64_t count : {2 * chunk + 1, 3 * chunk, 3 * chunk - 5}) {
          prove("nccl-2.30", "ring", {func, size, count, 8, 0}, communicator(1, protocol));
          if (HasFailure()) return;
        }
      }
}

TEST(NcclRing, IsRightOnEveryNodeTemplate) {
  for (const std::string_view node : nccl_template_names())
    for (const int per_node : {1, 2, 3, 8})
      for (const int nodes : {1, 2, 3})
        for (const Func func : kRingFuncs) {
          const int size = nodes * per_node;
          Communicator comm = communicator(16, Protocol::ll);
          comm.node = per_node <= nccl_template(node).gpu_count() ? node : "auto";
          comm.node_of = nodes_of(size, per_node);
          const std::uint64_t count = enough_for_16_channels(func, size);
          prove("nccl-2.30", "ring", {func, size, count, 8, size - 1}, comm);
          if (HasFailure()) return;
        }
}

TEST(NcclRing, IsRightOnScatteredAndUnequalNodes) {
  const std::vector<std::vector<std::int32_t>> layouts{
      {0, 1, 0, 1, 0, 1}, {0, 0, 0, 1, 1, 2}, {5, 5, 3, 5, 9, 3, 3, 9}};
  for (const auto& node_of : layouts)
    for (const Func func : kRingFuncs) {
      Communicator comm = communicator(8, Protocol::ll);
      comm.node_of = node_of;
      const auto size = static_cast<int>(node_of.size());
      prove("nccl-2.28", "ring", {func, size, enough_for_16_channels(func, size), 8, 1}, comm);
    }
}

TEST(NcclRing, LeavesEveryHgxNodeOnceByChannelThroughAllNics) {
  const int size = 32;
  Communicator comm = communicator(16, Protocol::ll);
  comm.node_of = nodes_of(size, 8);
  const CheckReport report =
      prove("nccl-2.30", "ring", {Func::all_reduce, size, 8192, 8, 0}, comm, true);
  std::set<std::pair<int, int>> senders, receivers;  // (node, local rank)
  for (const PairBytes& pair : report.pairs)
    if (pair.source / 8 != pair.destination / 8) {
      EXPECT_EQ(pair.destination / 8, (pair.source / 8 + 1) % 4);
      EXPECT_EQ(pair.destination % 8, pair.source % 8) << "rails are not crossed";
      senders.insert({pair.source / 8, pair.source % 8});
      receivers.insert({pair.destination / 8, pair.destination % 8});
    }
  EXPECT_EQ(senders.size(), 32U);
  EXPECT_EQ(receivers.size(), 32U);
}

TEST(NcclRing, OverTwoHgxNodesIsTheOneOfTheSearch) {
  const NcclNodes nodes(16, nodes_of(16, 8));
  const auto ring = [&](int channel) {
    const NcclRing order(nodes, nccl_node("hgx-h100-400g", 8), channel);
    std::vector<GroupRank> ranks;
    for (int i = 0; i < 16; ++i) {
      ranks.push_back(order.rank_at(i));
      EXPECT_EQ(order.position_of(ranks.back()), i);
    }
    return ranks;
  };
  EXPECT_EQ(ring(0),
            (std::vector<GroupRank>{0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8}));
  EXPECT_EQ(ring(1),
            (std::vector<GroupRank>{1, 2, 3, 4, 5, 6, 7, 0, 8, 15, 14, 13, 12, 11, 10, 9}));
  EXPECT_EQ(ring(8), ring(0));
}

TEST(NcclRing, LeavesAndEntersByTheNicsThatTheSearchGaveItsChannel) {
  const auto nic = [](const char* node, int channel, int local, int ranks = 8) {
    return nccl_ring_nic(nccl_node(node, ranks), channel, local, ranks);
  };
  // Channel 2 enters by GPU 2 and leaves by GPU 3.
  EXPECT_EQ(nic("hgx-h100-400g", 2, 2), 2);
  EXPECT_EQ(nic("hgx-h100-400g", 2, 3), 3);
  EXPECT_EQ(nic("hgx-h100-200g", 2, 2), 2);
  EXPECT_EQ(nic("hgx-h100-200g", 2, 3), 2);  // through GPU 2
  EXPECT_EQ(nic("hgx-h100-4nic", 3, 7), 3);
  EXPECT_EQ(nic("dgx-a100", 3, 2), 3);
  // A communicator with fewer GPUs names the GPU that has the NIC: the one where the channel
  // enters.
  EXPECT_EQ(nic("hgx-h100-400g", 2, 2, 4), nccl_nic_beside(2));
  EXPECT_EQ(nic("hgx-h100-400g", 2, 3, 4), nccl_nic_beside(2));
  EXPECT_EQ(nic("hgx-h100-400g", 1, 0, 1), nccl_nic_beside(0));
}

TEST(NcclRing, LeavesThroughTheEntryGpusNicInASchedule) {
  Communicator comm = communicator(0);
  comm.channels = comm.max_channels = 0;
  comm.node = "hgx-h100-400g";
  comm.node_of = nodes_of(8, 2);
  const Collective c{Func::all_reduce, 8, 1 << 24, 4, 0};
  const auto ring = find_algorithm("nccl-2.30", c.func, "ring")->make(c, comm);
  EXPECT_EQ(ring->actors(0), 8);
  // Channel 0 visits ranks 0, 1, 2, ...; rank 1 leaves the node through the NIC of rank 0.
  EXPECT_EQ(ring->nic(1, 2, 0, Way::send), Schedule::nic_of(0));
  EXPECT_EQ(ring->nic(1, 2, 0, Way::recv), Schedule::nic_of(2));
  EXPECT_EQ(ring->nic(0, 3, 1, Way::send), Schedule::nic_of(1));
}

TEST(NcclRing, OfHgxNodesKeepsToItsRail) {
  Communicator comm = communicator(0);
  comm.channels = comm.max_channels = 16;
  comm.node_of = nodes_of(32, 8);
  const Collective c{Func::all_reduce, 32, 1 << 20, 4, 0};
  const auto ring = find_algorithm("nccl-2.30", c.func, "ring")->make(c, comm);
  int crossings = 0;
  for (GroupRank r = 0; r < 32; ++r)
    for (int a = 0; a < ring->actors(r); ++a) {
      const int channel = ring->actor(r, a).channel;
      const GroupRank to = ring->step(r, a, 0).send_to[0];
      if (to / 8 == r / 8) continue;
      ++crossings;
      EXPECT_EQ(ring->nic(r, to, channel, Way::send), ring->nic(r, to, channel, Way::recv))
          << channel << ": " << r << " to " << to;
    }
  EXPECT_EQ(crossings, 4 * 16);
}

// Counts that were worked out without this code.
TEST(NcclRing, OfALargeAllReduceSendsWholeChunksAndEmptySlices) {
  const auto messages = [](int size, std::uint64_t bytes) {
    const Collective c{Func::all_reduce, size, bytes / 4, 4, 0};
    const auto schedule = find_algorithm("nccl-2.30", c.func, "ring")->make(c, communicator(16));
    std::map<std::uint64_t, int> count;
    EXPECT_EQ(schedule->actors(0), 16);
    for (int k = 0; k < schedule->actor(0, 5).steps; ++k) {
      const Step step = schedule->step(0, 5, k);
      for (std::uint32_t s = 0; s < step.slices && !step.send_to.empty(); ++s)
        ++count[slice_of(step.send, step, s).count * 4];
    }
    return count;
  };
  using Count = std::map<std::uint64_t, int>;
  constexpr std::uint64_t kMiB = 1 << 20;
  EXPECT_EQ(messages(16, 1024 * kMiB), (Count{{kMiB, 120}}));
  EXPECT_EQ(messages(64, 1024 * kMiB), (Count{{kMiB / 2, 252}}));
  EXPECT_EQ(messages(1024, 1024 * kMiB), (Count{{kMiB / 32, 4092}}));
  EXPECT_EQ(messages(16, 25 * kMiB), (Count{{51200, 60}}));
  EXPECT_EQ(messages(64, 25 * kMiB), (Count{{25600, 126}, {0, 126}}));
  EXPECT_EQ(messages(1024, 25 * kMiB), (Count{{1600, 2046}, {0, 2046}}));
}

TEST(NcclRing, SendsNothingForNoElements) {
  for (const Func func : kRingFuncs)
    EXPECT_EQ(prove("nccl-2.30", "ring", {func, 4, 0, 4, 0}, communicator(4)).messages, 0U);
}

TEST(NcclRing, HasFourSlicesInFlightWithSimpleAndEightOtherwise) {
  const auto credits = [](Func func, Protocol protocol) {
    const Collective c{func, 4, 100, 4, 0};
    return find_algorithm("nccl-2.30", func, "ring")
        ->make(c, communicator(1, protocol))
        ->flow_control()
        .credits;
  };
  EXPECT_EQ(credits(Func::all_reduce, Protocol::simple), 4U);
  EXPECT_EQ(credits(Func::all_gather, Protocol::simple), 4U);
  EXPECT_EQ(credits(Func::broadcast, Protocol::simple), 8U);
  EXPECT_EQ(credits(Func::all_reduce, Protocol::ll128), 8U);
}

}  // namespace
}  // namespace ghostrank
