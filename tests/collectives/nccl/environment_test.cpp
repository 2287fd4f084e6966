// NCCL's environment variables: the values accepted, those refused, and their effects. Sizes are
// drawn at random and compared with closed forms that are restated here.
#include "collectives/nccl/environment.h"

#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/schedules/p2p_split.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

std::string refusal(const Environment& environment) {
  try {
    nccl_settings(environment);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(NcclEnvironment, RefusesWhatItDoesNotFollow) {
  EXPECT_NE(refusal({{"NCCL_DEBUG", "INFO"}}).find("known are NCCL_ALGO"), std::string::npos);
  EXPECT_EQ(refusal({{"NCCL_MAX_NCHANNELS", "65"}}),
            "NCCL_MAX_NCHANNELS=65: takes a whole number from 1 to 64");
  for (const char* text : {"", "x", "4x", "-1", "0", "4.5", "99999999999999999999"})
    EXPECT_NE(refusal({{"NCCL_MIN_NCHANNELS", text}}), "") << text;
  EXPECT_NE(refusal({{"NCCL_NTHREADS", "100"}}), "");
  EXPECT_NE(refusal({{"NCCL_BUFFSIZE", "100000"}}), "");
  EXPECT_NE(refusal({{"NCCL_P2P_NET_CHUNKSIZE", "100000"}}), "");
  EXPECT_NE(refusal({{"NCCL_MIN_NCHANNELS", "8"}, {"NCCL_MAX_CTAS", "4"}}), "");
  EXPECT_NE(refusal({{"NCCL_ALGO", "rings"}}), "");
  EXPECT_NE(refusal({{"NCCL_PROTO", "allreduce:Simple;LL"}}), "");
}

NcclPlan plan_with(const Environment& environment, Func func = Func::all_reduce,
                   std::uint64_t count = 1 << 26) {
  Communicator comm;
  comm.channels = 0;
  comm.protocol = Protocol::simple;
  comm.node_of = nodes_of(32, 8);
  comm.environment = environment;
  return nccl_plan(NcclVersion::v2_30, NcclAlgorithm::ring, {func, 32, count, 4, 0}, comm);
}

TEST(NcclEnvironment, LimitsTheChannelsByTheTighterVariable) {
  EXPECT_EQ(plan_with({}).channels, 16);
  EXPECT_EQ(plan_with({{"NCCL_MAX_NCHANNELS", "6"}}).channels, 6);
  EXPECT_EQ(plan_with({{"NCCL_MAX_NCHANNELS", "6"}, {"NCCL_MAX_CTAS", "4"}}).channels, 4);
  EXPECT_EQ(plan_with({{"NCCL_MIN_NCHANNELS", "20"}, {"NCCL_MIN_CTAS", "24"}}).channels, 24);
  EXPECT_EQ(plan_with({{"NCCL_MIN_NCHANNELS", "4"}}).channels, 16);
}

TEST(NcclEnvironment, NvlsTreeHasChannelsOfItsOwn) {
  const auto channels = [](const Environment& environment) {
    Communicator comm;
    comm.channels = 0;
    comm.node_of = nodes_of(32, 8);
    comm.environment = environment;
    return nccl_plan(NcclVersion::v2_30, NcclAlgorithm::nvls_tree,
                     {Func::all_reduce, 32, 1 << 26, 4, 0}, comm)
        .channels;
  };
  EXPECT_EQ(channels({}), 16);
  EXPECT_EQ(channels({{"NCCL_MAX_NCHANNELS", "4"}}), 16);
  EXPECT_EQ(channels({{"NCCL_MAX_CTAS", "4"}}), 4);
  EXPECT_EQ(channels({{"NCCL_MIN_CTAS", "24"}}), 24);
}

TEST(NcclEnvironment, NvlsTreeIsPlayedOverTheChannelsThatTheCtasLeave) {
  Communicator comm;
  comm.channels = 0;
  comm.node_of = nodes_of(32, 8);
  const auto actors = [&](const Environment& environment) {
    comm.environment = environment;
    return find_algorithm("nccl-2.30", Func::all_reduce, "nvlstree")
        ->make({Func::all_reduce, 32, 1 << 26, 4, 0}, comm)
        ->actors(0);
  };
  EXPECT_EQ(actors({}), 2 * 16);  // up and down in every channel
  EXPECT_EQ(actors({{"NCCL_MAX_NCHANNELS", "4"}}), 2 * 16);
  EXPECT_EQ(actors({{"NCCL_MAX_CTAS", "4"}}), 2 * 4);
}

TEST(NcclEnvironment, SizesOfFifosGiveTheSizesOfChunks) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t bytes = (16 + random() % 4000) * 4096;
    NcclBuffers buffers{bytes, bytes, bytes};
    EXPECT_EQ(nccl_step_bytes(Protocol::simple, buffers) * 8, bytes);
    // LL has 8 bytes of data in 16 bytes on the wire, LL128 has 120 in 128.
    EXPECT_EQ(nccl_step_bytes(Protocol::ll, buffers) * 16, bytes);
    EXPECT_EQ(nccl_step_bytes(Protocol::ll128, buffers) * 8 * 16, bytes * 15);
    const NcclPlan plan = plan_with({{"NCCL_BUFFSIZE", std::to_string(bytes)}});
    EXPECT_EQ(plan.chunk_elements(1 << 24), bytes / 2 / 512 * 512 / 4) << bytes;
  }
}

// An all-reduce of S bytes over n ranks puts 2(n-1) S on the wire, for all sizes of the FIFOs and
// all numbers of channels.
TEST(NcclEnvironment, ChangesMessagesButNotBytes) {
  std::mt19937_64 random(2);
  std::set<std::uint64_t> seen;  // numbers of messages
  for (int i = 0; i < 20; ++i) {
    const Environment environment{{"NCCL_BUFFSIZE", std::to_string((16 + random() % 64) * 4096)},
                                  {"NCCL_MAX_NCHANNELS", std::to_string(1 + random() % 16)},
                                  {"NCCL_NTHREADS", std::to_string(64 + 32 * (random() % 15))}};
    Communicator comm;
    comm.channels = 0;
    comm.protocol = Protocol::simple;
    comm.node_of = nodes_of(4, 2);
    comm.environment = environment;
    const Collective c{Func::all_reduce, 4, 50'000, 4, 0};
    const CheckReport report = prove("nccl-2.30", "ring", c, comm);
    EXPECT_EQ(report.bytes, 2 * 3 * c.count * 4);
    seen.insert(report.messages);
  }
  EXPECT_GT(seen.size(), 1U);
}

TEST(NcclEnvironment, ThreadsDecideWhenSmallCallsDropChannels) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t threads = 64 + 32 * (random() % 15), count = 1 + random() % 400000;
    const NcclPlan plan =
        plan_with({{"NCCL_NTHREADS", std::to_string(threads)}}, Func::all_reduce, count);
    // 64 bytes per thread and channel; a channel with less is dropped.
    const std::uint64_t enough = count * 4 / (threads * 64);
    EXPECT_EQ(plan.task.max_channels, std::clamp<std::uint64_t>(enough, 1, 16)) << threads;
  }
}

TEST(NcclEnvironment, SetsChannelsAndMessagesOfPointToPoint) {
  const NcclNodes nodes(32, nodes_of(32, 8));
  const auto with = [&](const Environment& environment) {
    return nccl_p2p_channels(NcclVersion::v2_30, nccl_node("hgx-h100-400g", 8), nodes, 16,
                             nccl_settings(environment));
  };
  EXPECT_EQ(with({}).channels, 16);
  EXPECT_EQ(with({}).max_per_peer, 4);
  EXPECT_EQ(with({{"NCCL_MAX_P2P_NCHANNELS", "3"}}).channels, 4);
  EXPECT_EQ(with({{"NCCL_MIN_P2P_NCHANNELS", "32"}}).channels, 32);
  EXPECT_EQ(with({{"NCCL_NCHANNELS_PER_NET_PEER", "8"}}).max_per_peer, 8);
  const NcclP2pChannels large = with({{"NCCL_P2P_NET_CHUNKSIZE", "262144"}});
  EXPECT_EQ(nccl_p2p_split(8 << 20, large, false, true).message_bytes, 262144U);
  EXPECT_EQ(with({{"NCCL_P2P_NET_CHUNKSIZE", "1048576"}}).chunk_bytes, 524288U);  // the FIFO's
}

TEST(NcclEnvironment, CrossNicRestrictsTheSearch) {
  const auto crosses = [](const Environment& environment) {
    Communicator comm;
    comm.channels = 0;
    comm.node_of = nodes_of(16, 8);
    comm.environment = environment;
    const NcclPlan plan = nccl_plan(NcclVersion::v2_30, NcclAlgorithm::ring,
                                    {Func::all_reduce, 16, 1 << 20, 4, 0}, comm);
    return plan.node->swap_odd_nodes;
  };
  EXPECT_TRUE(crosses({}));
  EXPECT_TRUE(crosses({{"NCCL_CROSS_NIC", "2"}}));
  EXPECT_FALSE(crosses({{"NCCL_CROSS_NIC", "0"}}));
  EXPECT_FALSE(crosses({{"NCCL_CROSS_NIC", "1"}}));  // any NIC, but rings do not alternate
}

TEST(NcclEnvironment, OneSizeForAllMessagesOfPointToPointLeavesTheirPartsAlone) {
  const NcclNodes nodes(32, nodes_of(32, 8));
  const auto split = [&](const Environment& environment, std::uint64_t bytes, bool over_network) {
    const NcclP2pChannels channels = nccl_p2p_channels(
        NcclVersion::v2_30, nccl_node("hgx-h100-400g", 8), nodes, 16, nccl_settings(environment));
    return nccl_p2p_split(bytes, channels, false, over_network);
  };
  for (const std::uint64_t bytes : {1000U, 300'000U, 8U << 20}) {
    for (const bool over_network : {false, true}) {
      const NcclP2pSplit given = split({{"NCCL_CHUNK_SIZE", "16384"}}, bytes, over_network);
      const NcclP2pSplit own = split({}, bytes, over_network);
      EXPECT_EQ(given.message_bytes, 16384U);
      EXPECT_NE(own.message_bytes, 16384U);
      EXPECT_EQ(given.parts, own.parts);
      EXPECT_EQ(given.part_bytes, own.part_bytes);
    }
  }
  EXPECT_THROW(split({{"NCCL_CHUNK_SIZE", "262144"}}, 1, true), std::invalid_argument);
}

TEST(NcclEnvironment, SmallerGroupsGoThroughRoundsOfTheirOwn) {
  // Two nodes of 4 as groups of 2: rank 0 sends to its own group, then to those 1, 3 and 2 groups
  // further on.
  const NcclRounds rounds(NcclNodes(8, nodes_of(8, 4)),
                          nccl_settings({{"NCCL_P2P_SCHEDULE_GROUP_SIZE", "2"}}).p2p_group);
  EXPECT_EQ(rounds.group(), 2);
  std::vector<GroupRank> targets;
  for (int round = 0; round < 8; ++round) targets.push_back(rounds.send_to(0, round));
  EXPECT_EQ(targets, (std::vector<GroupRank>{0, 1, 2, 3, 6, 7, 4, 5}));
  Communicator comm;
  comm.channels = 0;
  comm.node_of = nodes_of(8, 4);
  for (const char* size : {"1", "2", "4", "8"}) {
    comm.environment = {{"NCCL_P2P_SCHEDULE_GROUP_SIZE", size}};
    const CheckReport report = prove("nccl-2.30", "p2p", {Func::all_to_all, 8, 5000, 4, 0}, comm);
    EXPECT_EQ(report.bytes, 8U * 7 * 20000) << size;
  }
}

// The NIC by which rank 0 sends to local rank 3 of another node.
int nic_to_another_number(const Environment& environment) {
  Communicator comm;
  comm.channels = 0;
  comm.node_of = nodes_of(16, 8);
  comm.environment = environment;
  const auto schedule = find_algorithm("nccl-2.30", Func::all_to_all, "p2p")
                            ->make({Func::all_to_all, 16, 1 << 16, 4, 0}, comm);
  for (int a = 0; a < schedule->actors(0); ++a) {
    const Actor actor = schedule->actor(0, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule->step(0, a, k);
      for (const GroupRank to : step.send_to)
        if (to == 11) return schedule->nic(0, to, actor.channel, Way::send);
    }
  }
  throw std::logic_error("rank 0 never sends to rank 11");
}

TEST(NcclEnvironment, WithoutPxnPointToPointLeavesByTheSendersOwnNic) {
  EXPECT_EQ(nic_to_another_number({}), Schedule::nic_of(3));
  EXPECT_EQ(nic_to_another_number({{"NCCL_P2P_PXN_LEVEL", "2"}}), Schedule::nic_of(3));
  EXPECT_EQ(nic_to_another_number({{"NCCL_P2P_PXN_LEVEL", "0"}}), Schedule::kOwnNic);
  EXPECT_NE(refusal({{"NCCL_P2P_PXN_LEVEL", "1"}}).find("an even one"), std::string::npos);
}

TEST(NcclEnvironment, WithoutPxnARingMayNotLeaveThroughAnotherGpusNic) {
  const auto trusts_ll128 = [](const Environment& environment) {
    Communicator comm;
    comm.channels = 0;
    comm.node = "hgx-h100-200g";
    comm.node_of = nodes_of(16, 8);
    comm.environment = environment;
    return nccl_plan(NcclVersion::v2_30, NcclAlgorithm::ring, {Func::all_reduce, 16, 1 << 20, 4, 0},
                     comm)
        .graphs->ring.links.ll128;
  };
  EXPECT_TRUE(trusts_ll128({{"NCCL_PXN_DISABLE", "0"}}));
  EXPECT_FALSE(trusts_ll128({{"NCCL_PXN_DISABLE", "1"}}));  // the path crosses a CPU
}

TEST(NcclEnvironment, SwitchesOffNvlsTreeAndPat) {
  const auto played = [](const Environment& environment, const Collective& c,
                         const std::string& algorithm, int per_node) {
    Communicator comm;
    comm.channels = 0;
    comm.node_of = nodes_of(c.size, per_node);
    comm.environment = environment;
    return std::string(find_algorithm("nccl-2.30", c.func, algorithm)->make(c, comm)->played());
  };
  const Collective large{Func::all_reduce, 32, 1 << 28, 4, 0};
  const auto only_nvls = [](const char* enabled) {
    return Environment{{"NCCL_ALGO", "nvlstree"}, {"NCCL_NVLS_ENABLE", enabled}};
  };
  EXPECT_EQ(played(only_nvls("2"), large, "tuned", 8).substr(0, 8), "nvlstree");
  EXPECT_THROW(played(only_nvls("0"), large, "tuned", 8), std::invalid_argument);
  EXPECT_THROW(played({{"NCCL_NVLS_ENABLE", "0"}}, large, "nvlstree", 8), std::invalid_argument);
  const Collective small{Func::all_gather, 32, 256, 4, 0};
  EXPECT_EQ(played({{"NCCL_PAT_ENABLE", "2"}}, small, "tuned", 1).substr(0, 3), "pat");
  EXPECT_EQ(played({{"NCCL_PAT_ENABLE", "0"}}, small, "tuned", 1).substr(0, 4), "ring");
  EXPECT_THROW(played({{"NCCL_PAT_ENABLE", "0"}}, small, "pat", 1), std::invalid_argument);
}

TEST(NcclEnvironment, BoundsTheChunksOfNvlsTree) {
  const auto chunk = [](const Environment& environment) {
    NcclTask task{Func::all_reduce, 32, 1 << 28, 4, Protocol::simple, 16};
    task.buffers = nccl_settings(environment).buffers;
    return nccl_chunk_bytes(NcclAlgorithm::nvls_tree, task, 1 << 24, {4});
  };
  EXPECT_EQ(chunk({}), 65536U);
  EXPECT_EQ(chunk({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131072"}}), 131072U);
  EXPECT_EQ(chunk({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "12288"}}), 12288U);
}

}  // namespace
}  // namespace ghostrank
