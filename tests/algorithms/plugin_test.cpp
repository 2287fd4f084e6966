// Shared objects with algorithms: loaded, proved, named and played; or refused.
#include <gtest/gtest.h>

#include "collectives/agent.h"
#include "emulator/traffic/cluster.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "tests/emulator/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

std::string error_of(const std::string& path) {
  Algorithms algorithms;
  try {
    algorithms.load_plugin(path, ".");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Plugin, BringsALibraryOfItsOwn) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
  EXPECT_EQ(algorithms.libraries().back(), "mine");
  const Algorithm& row = algorithms.resolve("mine", Func::all_reduce, "auto");
  EXPECT_EQ(row.name, "two-way-ring");
  EXPECT_EQ(&algorithms.resolve("generic", Func::all_reduce, "mine/two-way-ring"), &row);
  EXPECT_EQ(algorithms.find("mine", Func::all_gather, "auto"), nullptr);
  EXPECT_FALSE(algorithms.contents().empty());
}

TEST(Plugin, ReducesRealDataRightInTheEngine) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
  testing::SmallJob job(3, 2, FabricKind::memory);
  job.spec.collectives.own = std::make_shared<const Algorithms>(std::move(algorithms));
  job.spec.collectives.library = "mine";
  job.spec.run.verify = true;
  // The broadcast is generic's, because the plug-in has none.
  const Result result =
      job.collective(Func::all_reduce, 1001).collective(Func::broadcast, 10).run();
  EXPECT_EQ(result.verify->checked_elements, 6066u);
  EXPECT_EQ(result.verify->wrong_elements, 0u);
}

TEST(Plugin, OfAnotherVersionIsRefusedBeforeItsRowsAreRead) {
  EXPECT_NE(error_of(GHOSTRANK_STALE_PLUGIN).find("was built against another ghostrank"),
            std::string::npos)
      << error_of(GHOSTRANK_STALE_PLUGIN);
}

TEST(Plugin, WithAWrongAlgorithmIsRefusedWithWhatTheCheckerFound) {
  const std::string error = error_of(GHOSTRANK_WRONG_PLUGIN);
  EXPECT_NE(error.find("wrong/forgetful is wrong for 2 ranks"), std::string::npos) << error;
  EXPECT_NE(error.find("ends with wrong content"), std::string::npos) << error;
}

TEST(Plugin, WithAWrongSchemeIsRefusedWithWhatTheCheckerFound) {
  const std::string error = error_of(GHOSTRANK_WRONG_SCHEME_PLUGIN);
  EXPECT_NE(error.find("wrong/careless is wrong for 1 ranks, count 1, root 0: "), std::string::npos)
      << error;
  EXPECT_NE(error.find("(seed "), std::string::npos) << error;
}

TEST(Plugin, WithARowThatIsAScheduleAndAgentsAtOnceIsRefused) {
  EXPECT_NE(error_of(GHOSTRANK_BOTH_PLUGIN)
                .find("the row 'wrong/both' needs either a make function, of schedules, or an ends "
                      "function, of agents"),
            std::string::npos)
      << error_of(GHOSTRANK_BOTH_PLUGIN);
}

TEST(Plugin, BringsACompressor) {
  Algorithms algorithms;
  const std::size_t built_in = algorithms.compressors().size();
  algorithms.load_plugin(GHOSTRANK_COMPRESSOR_PLUGIN, ".");
  ASSERT_EQ(algorithms.compressors().size(), built_in + 1);
  EXPECT_EQ(algorithms.compressors().back()->name, "eight-bits");
  try {
    algorithms.load_plugin(GHOSTRANK_COMPRESSOR_PLUGIN, ".");
    FAIL() << "its name is taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is a compressor 'eight-bits' already"),
              std::string::npos)
        << error.what();
  }
}

TEST(Plugin, WithAWrongCompressorIsRefusedWithWhatItDoes) {
  const std::string error = error_of(GHOSTRANK_WRONG_COMPRESSOR_PLUGIN);
  EXPECT_NE(error.find("the compressor 'first' is wrong: element 1 is 0.0"), std::string::npos)
      << error;
  EXPECT_NE(error.find("more than error() allows"), std::string::npos) << error;
}

TEST(Plugin, BringsASchemeWithAgents) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_SERVER_PLUGIN, ".");
  const Algorithm& row = algorithms.resolve("mine", Func::all_reduce, "packet-server");
  EXPECT_FALSE(row.make);
  EXPECT_EQ(row.ends(5, {})->helpers().size(), 1U);
}

TEST(Plugin, BringsARouting) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_ROUTING_PLUGIN, ".");
  const Routing& row = *algorithms.routings().back();
  EXPECT_EQ(row.name, "by-source");
  // Seven nodes with a NIC each, seven leaves, two spines: in the ring each leaf sends to the next.
  testing::SmallJob job(7, 1, FabricKind::virtual_time);
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.leaves = 7;
  job.spec.cluster.topology.spines = 2;
  job.spec.cluster.topology.routing = &row;
  const Result result = job.collective(Func::all_reduce, 700).run();
  ASSERT_TRUE(result.network);
  EXPECT_EQ(result.network->routing, "by-source");
  int seen = 0;
  for (const LinkLoad& load : result.network->hottest) {
    if (!load.link.starts_with("leaf")) continue;
    ++seen;
    const bool even = (load.link[4] - '0') % 2 == 0;
    EXPECT_EQ(load.link.substr(6), even ? "spine0" : "spine1");
  }
  EXPECT_GT(seen, 0);
}

// Seven nodes send to the eighth. Where nothing but pauses slows senders down, the queue of its
// port fills; a target for delays keeps it shorter, and the port is nearly as busy.
TEST(Plugin, BringsACongestionControl) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_CONTROL_PLUGIN, ".");
  const CongestionControl& row = *algorithms.congestion_controls().back();
  EXPECT_EQ(row.name, "delay-target");
  const auto play = [](const CongestionControl& control) {
    testing::SmallJob job(8, 1, FabricKind::virtual_time);
    job.spec.cluster.nic = {100e9, kPicosPerMicro};
    job.spec.fabric.network = NetworkModel::packet;
    job.spec.fabric.queues.control = &control;
    job.spec.collectives.algorithm(Func::gather) = "linear";
    return job.collective(Func::gather, 4'000'000).run();
  };
  const Result without = play(congestion_controls()[1]), with = play(row);
  const auto longest = [](const Result& result) {
    std::uint64_t bytes = 0;
    for (const LinkTier& tier : result.network->tiers) bytes = std::max(bytes, tier.queue->longest);
    return bytes;
  };
  EXPECT_LT(longest(with), longest(without) / 2);
  EXPECT_LT(with.iterations.at(0).seconds, 1.25 * without.iterations.at(0).seconds);
}

TEST(Plugin, BringsAPlacementOfServers) {
  const auto beside = [](const char* name) {
    Algorithms algorithms;
    algorithms.load_plugin(GHOSTRANK_SERVER_PLUGIN, ".");
    algorithms.load_plugin(GHOSTRANK_PLACEMENT_PLUGIN, ".");
    testing::SmallJob job(4, 1, FabricKind::virtual_time);
    for (const ServerPlacement* row : algorithms.placements())
      if (row->name == name) job.spec.cluster.servers.placement = row;
    job.spec.cluster.servers.colocated = !job.spec.cluster.servers.placement->machines;
    job.spec.cluster.servers.count = 1;
    job.spec.collectives.own = std::make_shared<const Algorithms>(std::move(algorithms));
    job.spec.collectives.algorithm(Func::all_reduce) = "mine/packet-server";
    job.workload.groups = {{0, world_ranks({2, 3})}, {0, world_ranks({0, 1})}};
    const Cluster cluster(job.spec, job.collective(Func::all_reduce, 7).workload, 1);
    std::vector<int> nodes;
    for (const SchemeUse& use : cluster.schemes())
      nodes.push_back(cluster.location(use.first_helper).node.value());
    return nodes;
  };
  EXPECT_EQ(beside("dedicated"), (std::vector<int>{4, 4}));
  EXPECT_EQ(beside("colocated"), (std::vector<int>{0, 0}));
  EXPECT_EQ(beside("mixed"), (std::vector<int>{4, 0}));
  EXPECT_EQ(beside("near"), (std::vector<int>{2, 1}));
}

TEST(Plugin, WithAWrongRoutingOrPlacementIsRefusedWithWhatItChose) {
  EXPECT_NE(
      error_of(GHOSTRANK_WRONG_ROUTING_PLUGIN).find("the routing 'from-one' chose path 1 of 1"),
      std::string::npos)
      << error_of(GHOSTRANK_WRONG_ROUTING_PLUGIN);
  EXPECT_NE(error_of(GHOSTRANK_FICKLE_ROUTING_PLUGIN)
                .find("the routing 'fickle' chose two paths for the same flow"),
            std::string::npos)
      << error_of(GHOSTRANK_FICKLE_ROUTING_PLUGIN);
  EXPECT_NE(error_of(GHOSTRANK_TAKEN_ROUTING_PLUGIN)
                .find("there is a routing 'ecmp' already; rename one of them"),
            std::string::npos)
      << error_of(GHOSTRANK_TAKEN_ROUTING_PLUGIN);
  EXPECT_NE(
      error_of(GHOSTRANK_WRONG_PLACEMENT_PLUGIN).find("the placement 'nowhere' chose node 3 of 3"),
      std::string::npos)
      << error_of(GHOSTRANK_WRONG_PLACEMENT_PLUGIN);
}

TEST(Plugin, WithAWrongCongestionControlIsRefusedWithItsRate) {
  EXPECT_NE(error_of(GHOSTRANK_WRONG_CONTROL_PLUGIN)
                .find("the congestion control 'stops' slows a sender down to 0.000000 bytes"),
            std::string::npos)
      << error_of(GHOSTRANK_WRONG_CONTROL_PLUGIN);
  EXPECT_NE(error_of(GHOSTRANK_FICKLE_CONTROL_PLUGIN)
                .find("the congestion control 'shares' gives two senders different rates"),
            std::string::npos)
      << error_of(GHOSTRANK_FICKLE_CONTROL_PLUGIN);
}

TEST(Plugin, ThatIsNoneIsRefused) {
  EXPECT_NE(error_of("nowhere.so").find("there is no such file"), std::string::npos);
  EXPECT_NE(error_of(GHOSTRANK_SOURCE_DIR "/README.md").find("cannot be loaded"),
            std::string::npos);
}

TEST(Plugin, LoadedTwiceIsRefusedBecauseItsNamesAreTaken) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
  try {
    algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
    FAIL() << "its name is taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is a mine/two-way-ring already"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ghostrank
