// NCCL's schedules proved by the checker, over sizes, nodes, protocols and counts, and held against
// what is known of their traffic.
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/checker.h"
#include "collectives/nccl.h"
#include "collectives/nccl_p2p_split.h"
#include "collectives/nccl_pat.h"
#include "collectives/schedule.h"

namespace ghostrank {
namespace {

constexpr Protocol kProtocols[] = {Protocol::simple, Protocol::ll, Protocol::ll128};
constexpr const char* kLibraries[] = {"nccl-2.28", "nccl-2.30"};

std::vector<std::int32_t> nodes_of(int size, int ranks_per_node) {
  std::vector<std::int32_t> node_of;
  for (int r = 0; r < size; ++r) node_of.push_back(r / ranks_per_node);
  return node_of;
}

Communicator communicator(int channels, Protocol protocol = Protocol::simple) {
  Communicator comm;
  comm.channels = comm.max_channels = channels;
  comm.protocol = protocol;
  return comm;
}

std::string describe(const Schedule& s, const Communicator& comm) {
  const Collective& c = s.collective();
  return std::string(name_of(c.func)) + ", size " + std::to_string(c.size) + ", count " +
         std::to_string(c.count) + " x " + std::to_string(c.element_bytes) + ", root " +
         std::to_string(c.root) + ", channels " + std::to_string(comm.channels) + ", " +
         std::string(name_of(s.protocol())) + ", node " + comm.node;
}

// Proved right; with the protocol Simple the bytes are the closed form's.
CheckReport prove(const char* library, const char* name, const Collective& c,
                  const Communicator& comm, bool pairs = false) {
  const Algorithm* row = find_algorithm(library, c.func, name);
  if (row == nullptr) throw std::invalid_argument(name);
  const auto schedule = row->make(c, comm);
  const CheckReport report = check(*schedule, {.pairs = pairs});
  EXPECT_TRUE(report.ok) << library << ' ' << name << ' ' << describe(*schedule, comm) << ": "
                         << report.error;
  if (schedule->protocol() == Protocol::simple) {
    EXPECT_EQ(report.bytes, row->cost(c).bytes) << name << ' ' << describe(*schedule, comm);
  } else {
    EXPECT_GE(report.bytes, row->cost(c).bytes) << name << ' ' << describe(*schedule, comm);
  }
  return report;
}

// Elements of 8 bytes that occupy 16 channels with LL, which needs the least data for that.
std::uint64_t enough_for_16_channels(Func func, int size) {
  const bool by_rank = func == Func::reduce_scatter || func == Func::all_gather;
  if (by_rank) return 16384 / static_cast<std::uint64_t>(size);
  return func == Func::all_reduce ? 8192 : 16384;
}

const std::vector<Func> kRingFuncs{Func::all_reduce, Func::reduce_scatter, Func::all_gather,
                                   Func::broadcast, Func::reduce};

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
  // One channel holds 32 KiB (LL) to 2 MiB (Simple) a chunk.
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
  for (const std::string_view node : nccl_node_names())
    for (const int per_node : {1, 2, 3, 8})
      for (const int nodes : {1, 2, 3})
        for (const Func func : kRingFuncs) {
          const int size = nodes * per_node;
          Communicator comm = communicator(16, Protocol::ll);
          comm.node = node;
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
    std::vector<Rank> ranks;
    for (int i = 0; i < 16; ++i) {
      ranks.push_back(order.rank_at(i));
      EXPECT_EQ(order.position_of(ranks.back()), i);
    }
    return ranks;
  };
  EXPECT_EQ(ring(0), (std::vector<Rank>{0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8}));
  EXPECT_EQ(ring(1), (std::vector<Rank>{1, 2, 3, 4, 5, 6, 7, 0, 8, 15, 14, 13, 12, 11, 10, 9}));
  EXPECT_EQ(ring(8), ring(0));
}

TEST(NcclRing, NamesTheNicsOfItsNode) {
  const NcclRingNics crossed = nccl_ring_nics(nccl_node("hgx-h100-400g", 8), 2, 0, 8);
  EXPECT_EQ(crossed.in, 2);
  EXPECT_EQ(crossed.out, 3);
  EXPECT_FALSE(crossed.pxn);
  const NcclRingNics pxn = nccl_ring_nics(nccl_node("hgx-h100-200g", 8), 2, 0, 8);
  EXPECT_EQ(pxn.in, 2);
  EXPECT_EQ(pxn.out, 2);
  EXPECT_TRUE(pxn.pxn);
  EXPECT_FALSE(nccl_ring_nics(nccl_node("dgx-a100", 8), 3, 0, 8).pxn);
}

// Counts worked out apart from this code.
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
        ->flow()
        .credits;
  };
  EXPECT_EQ(credits(Func::all_reduce, Protocol::simple), 4U);
  EXPECT_EQ(credits(Func::all_gather, Protocol::simple), 4U);
  EXPECT_EQ(credits(Func::broadcast, Protocol::simple), 8U);
  EXPECT_EQ(credits(Func::all_reduce, Protocol::ll128), 8U);
}

TEST(NcclTree, IsRightOverNodesOfOneGpu) {
  for (const char* library : kLibraries)
    for (int size = 1; size <= 33; ++size)
      for (const Protocol protocol : kProtocols)
        for (const std::uint64_t count : {0, 1, 1000}) {
          prove(library, "tree", {Func::all_reduce, size, count, 4, 0}, communicator(4, protocol));
          if (HasFailure()) return;
        }
}

TEST(NcclTree, IsRightOnEveryNodeTemplate) {
  for (const std::string_view node : nccl_node_names())
    for (const int per_node : {1, 2, 3, 8})
      for (const int nodes : {1, 2, 3, 4, 7, 8}) {
        const int size = nodes * per_node;
        Communicator comm = communicator(16, Protocol::ll);
        comm.node = node;
        comm.node_of = nodes_of(size, per_node);
        prove("nccl-2.30", "tree", {Func::all_reduce, size, 8192, 8, 0}, comm);
        if (HasFailure()) return;
      }
}

TEST(NcclTree, IsAsDeepAsItsClosedFormSaysAndHasNoNodeInsideBothTrees) {
  for (int nodes = 2; nodes <= 130; ++nodes) {
    const Collective c{Func::all_reduce, nodes, 1, 4, 0};
    for (int tree = 0; tree < 2; ++tree) {
      int deepest = 0;
      for (int node = 0; node < nodes; ++node) {
        int depth = 0;
        for (int at = node; nccl_double_tree(nodes, at, tree).up >= 0; ++depth)
          at = nccl_double_tree(nodes, at, tree).up;
        deepest = std::max(deepest, depth);
      }
      EXPECT_EQ(2 * deepest, find_algorithm("nccl-2.30", c.func, "tree")->cost(c).steps) << nodes;
    }
    for (int node = 0; node < nodes && nodes % 2 == 0; ++node) {
      const auto inside = [&](int tree) {
        const NcclTreeNode place = nccl_double_tree(nodes, node, tree);
        return place.child[0] >= 0 || place.child[1] >= 0;
      };
      EXPECT_FALSE(inside(0) && inside(1)) << nodes << ", " << node;
    }
  }
}

TEST(NcclTree, IsRightOverManyChunks) {
  for (const Protocol protocol : kProtocols)
    prove("nccl-2.30", "tree", {Func::all_reduce, 5, 3 * nccl_step_bytes(protocol) / 8 + 3, 8, 0},
          communicator(1, protocol));
}

TEST(NcclTree, CrossesNodesOnlyAlongTheDoubleTree) {
  Communicator comm = communicator(16, Protocol::ll);
  comm.node_of = nodes_of(64, 8);
  const std::uint64_t count = 8192, wire_bytes = 16 * count;  // LL doubles what it sends
  const CheckReport report =
      prove("nccl-2.30", "tree", {Func::all_reduce, 64, count, 8, 0}, comm, true);
  std::vector<std::uint64_t> egress(8);
  std::uint64_t total = 0;
  for (const PairBytes& pair : report.pairs) {
    if (pair.source / 8 == pair.destination / 8) continue;
    EXPECT_EQ(pair.source % 8, pair.destination % 8);
    egress[static_cast<std::size_t>(pair.source / 8)] += pair.bytes;
    total += pair.bytes;
  }
  EXPECT_EQ(total, 2 * 7 * wire_bytes);
  // Every node is a leaf of at least one tree (1 edge) and has at most 3 edges in the other, each
  // of half the data.
  for (const std::uint64_t bytes : egress) {
    EXPECT_GE(bytes, wire_bytes);
    EXPECT_LE(bytes, 2 * wire_bytes);
  }
}

TEST(NcclNvlsTree, IsRight) {
  for (const char* library : kLibraries)
    for (const int per_node : {2, 4, 5, 8})
      for (const int nodes : {1, 2, 3, 4, 5})
        for (const std::uint64_t count : {0, 1, 100, 9000}) {
          Communicator comm = communicator(2);
          comm.node_of = nodes_of(nodes * per_node, per_node);
          prove(library, "nvlstree", {Func::all_reduce, nodes * per_node, count, 8, 0}, comm);
          if (HasFailure()) return;
        }
}

TEST(NcclNvlsTree, IsRightOverManyLoops) {
  Communicator comm = communicator(1);
  comm.node_of = nodes_of(8, 2);
  prove("nccl-2.30", "nvlstree", {Func::all_reduce, 8, 30'011, 8, 0}, comm);
}

TEST(NcclNvlsTree, SpreadsTheTreeEvenlyOverTheNicsOfANode) {
  Communicator comm = communicator(2);
  comm.node_of = nodes_of(32, 8);
  const std::uint64_t count = 8192;
  const CheckReport report =
      prove("nccl-2.30", "nvlstree", {Func::all_reduce, 32, count, 8, 0}, comm, true);
  std::vector<std::uint64_t> by_rail(8);
  for (const PairBytes& pair : report.pairs)
    if (pair.source / 8 != pair.destination / 8) {
      EXPECT_EQ(pair.source % 8, pair.destination % 8);
      by_rail[static_cast<std::size_t>(pair.source % 8)] += pair.bytes;
    }
  for (const std::uint64_t bytes : by_rail) EXPECT_EQ(bytes, 2 * 3 * count * 8 / 8);
}

TEST(NcclNvlsTree, NeedsNodesOfSeveralRanksAndOneSize) {
  const auto make = [](const std::vector<std::int32_t>& node_of) {
    Communicator comm = communicator(2);
    comm.node_of = node_of;
    return find_algorithm("nccl-2.30", Func::all_reduce, "nvlstree")
        ->make({Func::all_reduce, 4, 10, 4, 0}, comm);
  };
  EXPECT_THROW(make({}), std::invalid_argument);
  EXPECT_THROW(make({0, 0, 0, 1}), std::invalid_argument);
  EXPECT_NO_THROW(make({0, 0, 1, 1}));
}

TEST(NcclPat, IsRightForEverySizeOfGroup) {
  for (const char* library : kLibraries)
    for (const Func func : {Func::all_gather, Func::reduce_scatter})
      for (int size = 1; size <= 33; ++size)
        for (const std::uint64_t count : {0, 1, 13, 300})
          for (const int channels : {1, 3}) {
            const Collective c{func, size, count, 4, 0};
            const auto schedule =
                find_algorithm(library, func, "pat")->make(c, communicator(channels));
            const CheckReport report = check(*schedule);
            ASSERT_TRUE(report.ok) << describe(*schedule, {}) << ": " << report.error;
            const std::uint64_t least = find_algorithm(library, func, "pat")->cost(c).bytes;
            if (func == Func::all_gather || (size & (size - 1)) == 0)
              ASSERT_EQ(report.bytes, least) << describe(*schedule, {});
            else
              ASSERT_GE(report.bytes, least) << describe(*schedule, {});
          }
}

TEST(NcclPat, IsRightWithMoreDataThanFitsAMessage) {
  for (const Func func : {Func::all_gather, Func::reduce_scatter})
    for (const int size : {2, 3, 5, 6, 8, 11, 16})
      for (const std::uint64_t count : {4'000, 30'000, 100'003}) {
        const Collective c{func, size, count, 8, 0};
        const auto schedule = find_algorithm("nccl-2.30", func, "pat")->make(c, communicator(1));
        const CheckReport report = check(*schedule);
        ASSERT_TRUE(report.ok) << describe(*schedule, {}) << ": " << report.error;
      }
}

// Every pattern delivers every block once, whatever fits into a chunk.
TEST(NcclPat, IsCompleteForEveryDepthOfAggregation) {
  for (const Func func : {Func::all_gather, Func::reduce_scatter})
    for (int n = 2; n <= 130; ++n)
      for (const std::uint64_t blocks_per_chunk : {1, 2, 4, 8, 1000}) {
        const NcclPatPattern pattern = nccl_pat_pattern(func, n, 1024, 1024 * blocks_per_chunk);
        std::multiset<int> blocks;
        for (const NcclPatPattern::Message& m : pattern.messages)
          for (const int block : m.blocks)
            if (block != NcclPatPattern::kHole)
              blocks.insert(func == Func::all_gather ? block + (1 << m.dimension) : block);
        std::multiset<int> all;
        for (int i = 1; i < n; ++i) all.insert(i);
        ASSERT_EQ(blocks, all) << n << ", " << blocks_per_chunk;
        std::size_t recvs = 0;
        for (const NcclPatPattern::Step& step : pattern.steps) recvs += step.recv >= 0 ? 1 : 0;
        ASSERT_EQ(recvs, pattern.messages.size());
      }
}

TEST(NcclPat, SendsHolesWhereRanksAreNoPowerOfTwo) {
  const auto blocks_sent = [](Func func, int size) {
    std::size_t blocks = 0;
    for (const auto& m : nccl_pat_pattern(func, size, 1024, 1 << 19).messages)
      blocks += m.blocks.size();
    return blocks;
  };
  EXPECT_EQ(blocks_sent(Func::reduce_scatter, 16), 15U);
  EXPECT_EQ(blocks_sent(Func::reduce_scatter, 17), 31U);  // of 32 places, 16 are needed
  EXPECT_EQ(blocks_sent(Func::all_gather, 17), 16U);
}

TEST(NcclPat, OfFewRanksIsAsWorkedOutByHand) {
  const auto sends = [](Func func, int size) {
    std::string text;
    for (const auto& m : nccl_pat_pattern(func, size, 1024, 1 << 16).messages)
      text += std::to_string(1 << m.dimension) + "x" + std::to_string(m.blocks.size()) + " ";
    return text;
  };
  EXPECT_EQ(sends(Func::all_gather, 8), "4x1 2x2 1x4 ");
  EXPECT_EQ(sends(Func::reduce_scatter, 8), "1x4 2x2 4x1 ");
  EXPECT_EQ(sends(Func::reduce_scatter, 3), "2x1 1x1 ");
}

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

TEST(NcclP2p, KeepsAnEmptyMessagePerPeer) {
  EXPECT_EQ(prove("nccl-2.30", "p2p", {Func::all_to_all, 5, 0, 4, 0}, communicator(4)).messages,
            20U);
}

TEST(NcclP2p, PutsTheRoundsOfANodeOfEightOnOneChannel) {
  Communicator comm = communicator(16);
  comm.node_of = nodes_of(32, 8);
  const Collective c{Func::all_to_all, 32, 64, 4, 0};
  const auto schedule = find_algorithm("nccl-2.30", c.func, "p2p")->make(c, comm);
  ASSERT_EQ(schedule->actors(3), 2 * 32);  // four channels, eight places each
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

TEST(NcclTuned, IsTheScheduleOfTheAlgorithmThatTheTunerTakes) {
  const auto steps = [](const char* name, Func func, std::uint64_t count, int per_node) {
    Communicator comm;
    comm.channels = 16;
    comm.node = per_node == 1 ? "one-gpu-400g" : "auto";
    comm.node_of = nodes_of(16, per_node);
    const auto schedule =
        find_algorithm("nccl-2.28", func, name)->make({func, 16, count, 4, 0}, comm);
    return std::make_pair(schedule->protocol(), schedule->actor(1, 0).steps);
  };
  const Func all_reduce = Func::all_reduce, all_gather = Func::all_gather;
  EXPECT_EQ(steps("tuned", all_reduce, 1000, 8), steps("tree", all_reduce, 1000, 8));
  EXPECT_EQ(steps("tuned", all_reduce, 1 << 26, 8), steps("nvlstree", all_reduce, 1 << 26, 8));
  EXPECT_EQ(steps("tuned", all_reduce, 1 << 26, 1), steps("ring", all_reduce, 1 << 26, 1));
  EXPECT_EQ(steps("tuned", all_gather, 1 << 13, 1), steps("pat", all_gather, 1 << 13, 1));
  EXPECT_EQ(steps("tuned", all_gather, 1 << 26, 1), steps("ring", all_gather, 1 << 26, 1));
}

TEST(NcclTuned, IsRightWhateverItTakes) {
  for (const Func func : {Func::all_reduce, Func::all_gather, Func::reduce_scatter})
    for (const int per_node : {1, 2, 4})
      for (const std::uint64_t count : {0, 1, 1000, 20000}) {
        Communicator comm;
        comm.channels = 0;
        comm.node_of = nodes_of(8, per_node);
        const auto schedule =
            find_algorithm("nccl-2.30", func, "tuned")->make({func, 8, count, 4, 0}, comm);
        const CheckReport report = check(*schedule);
        EXPECT_TRUE(report.ok) << describe(*schedule, comm) << ": " << report.error;
      }
}

TEST(Nccl, HasTheRingAsFirstRowOfEveryCollective) {
  for (const char* library : kLibraries) {
    for (const Func func : kRingFuncs)
      EXPECT_EQ(find_algorithm(library, func, "auto")->name, "ring");
    for (const Func func : {Func::all_to_all, Func::send_recv})
      EXPECT_EQ(find_algorithm(library, func, "auto")->name, "p2p");
  }
}

TEST(Nccl, RefusesWhatItCannotDo) {
  const auto make = [](Func func, const char* name, const Communicator& comm,
                       std::uint32_t element_bytes = 4) {
    return find_algorithm("nccl-2.30", func, name)->make({func, 4, 10, element_bytes, 0}, comm);
  };
  EXPECT_THROW(make(Func::all_reduce, "ring", {}, 3), std::invalid_argument);
  EXPECT_THROW(make(Func::all_reduce, "ring", communicator(65)), std::invalid_argument);
  Communicator unknown;
  unknown.node = "abacus";
  EXPECT_THROW(make(Func::all_reduce, "ring", unknown), std::invalid_argument);
  Communicator short_list;
  short_list.node_of = {0, 1};
  EXPECT_THROW(make(Func::all_reduce, "ring", short_list), std::invalid_argument);
  EXPECT_THROW(make(Func::all_to_all, "p2p", communicator(4, Protocol::ll)), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
