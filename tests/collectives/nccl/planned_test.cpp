// The decisions of NCCL's own planning code against ours. data/nccl_planned.json holds answers to
// questions drawn at random, from the functions of 2.28.9 and 2.30.7 (compiled for a host without a
// GPU) that split calls over channels, size chunks, choose algorithms, and build trees and PAT's
// steps.
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "collectives/nccl/machine/graphs.h"
#include "collectives/nccl/nccl.h"
#include "tests/collectives/nccl/pat_sends.h"

namespace ghostrank {
namespace {

using Json = nlohmann::json;

const Json& planned() {
  static const Json kPlanned = [] {
    std::ifstream file(GHOSTRANK_SOURCE_DIR "/tests/collectives/data/nccl_planned.json");
    return Json::parse(file);
  }();
  return kPlanned;
}

Func func_named(const std::string& name) {
  for (const Func func :
       {Func::broadcast, Func::reduce, Func::all_gather, Func::reduce_scatter, Func::all_reduce})
    if (name_of(func) == name) return func;
  throw std::out_of_range(name);
}

NcclAlgorithm algorithm_named(const std::string& name) {
  for (const NcclAlgorithm algorithm : kNcclAlgorithms)
    if (name_of(algorithm) == name) return algorithm;
  throw std::out_of_range(name);
}

NcclTask task_of(const Json& j, int ranks) {
  return {func_named(j["func"]),
          ranks,
          j["count"],
          j["elt"],
          protocol_named(j["protocol"].get<std::string>()).value(),
          j["max_channels"]};
}

// NCCL counts an all-gather and a broadcast in bytes, other functions in elements.
std::uint64_t units(const NcclTask& task) {
  return task.func == Func::all_gather || task.func == Func::broadcast ? task.element_bytes : 1;
}

TEST(NcclPlanned, CallsAndGroupsOfCallsAreSplitAlikeIntoChannelsAndChunks) {
  ASSERT_GE(planned()["splits"].size(), 200U);
  for (const Json& v : planned()["splits"]) {
    std::vector<NcclTask> tasks;
    for (const Json& task : v["tasks"]) tasks.push_back(task_of(task, v["ranks"]));
    const NcclVersion version = v["version"] == "2.28" ? NcclVersion::v2_28 : NcclVersion::v2_30;
    const std::vector<NcclSplit> splits = nccl_split(tasks, v["channels"], version);
    const NcclCommSize shape{v["nodes"], v["heads"]};
    ASSERT_EQ(splits.size(), v["parts"].size());
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const NcclSplit& split = splits[i];
      const Json& part = v["parts"][i];
      EXPECT_EQ(split.first, part["first"]) << v;
      EXPECT_EQ(split.channels, part["channels"]) << v;
      const std::vector<std::uint64_t> elements{split.lo, split.channels > 2 ? split.mid : 0,
                                                split.hi};
      const NcclAlgorithm algorithm = algorithm_named(v["tasks"][i]["algorithm"]);
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(elements[k] * units(tasks[i]), part["elements"][k]) << v;
        if (elements[k] == 0) continue;
        EXPECT_EQ(nccl_chunk_bytes(algorithm, tasks[i], elements[k], shape), part["chunks"][k])
            << v;
      }
    }
  }
}

NcclLinks links_of(const Json& j) {
  return {j["channels"], j["inside"], j["between"],      j["latency"],
          j["nvlink"],   j["ll128"],  j["same_channels"]};
}

TEST(NcclPlanned, AlgorithmProtocolAndChannelsAreChosenAlike) {
  const std::map<std::string, NcclNode::Tree> trees{{"plain", NcclNode::Tree::plain},
                                                    {"balanced", NcclNode::Tree::balanced},
                                                    {"split", NcclNode::Tree::split}};
  ASSERT_GE(planned()["choices"].size(), 150U);
  for (const Json& v : planned()["choices"]) {
    NcclGraphs graphs;
    graphs.tree.links = links_of(v["graphs"][0]);
    graphs.ring.links = links_of(v["graphs"][1]);
    graphs.nvls = links_of(v["graphs"][2]);
    if (!v["nvls"].get<bool>()) graphs.nvls.channels = 0;
    graphs.node.tree = trees.at(v["tree"]);
    graphs.node.gpu = v["hopper"].get<bool>() ? NcclGpu::hopper : NcclGpu::ampere;
    graphs.node.graphs = &graphs;
    NcclTunerInput in{func_named(v["func"]), 0,           v["ranks"], v["nodes"],
                      v["channels"],         &graphs.node};
    in.bytes = nccl_tuner_bytes({in.func, in.ranks, v["count"], v["elt"]});
    in.overrides.algorithms = v["NCCL_ALGO"];
    in.overrides.protocols = v["NCCL_PROTO"];
    in.nvls = v["elt"] != 1;
    if (v["choice"].is_null()) {
      EXPECT_THROW(nccl_choose(in), std::invalid_argument) << v;
      continue;
    }
    const NcclChoice choice = nccl_choose(in);
    EXPECT_EQ(choice.algorithm, algorithm_named(v["choice"]["algorithm"])) << v;
    EXPECT_EQ(choice.protocol, protocol_named(v["choice"]["protocol"].get<std::string>())) << v;
    if (v["choice"].contains("max_channels")) {
      EXPECT_EQ(choice.max_channels, v["choice"]["max_channels"]) << v;
    }
  }
}

TEST(NcclPlanned, MessagesOfPatAreAlike) {
  ASSERT_GE(planned()["pat"].size(), 50U);
  for (const Json& v : planned()["pat"]) EXPECT_EQ(test::pat_sends(v), v["sends"]) << v;
}

TEST(NcclPlanned, DoubleTreesOverOddNumbersOfNodesAreAlike) {
  ASSERT_FALSE(planned()["double_trees"].empty());
  for (const Json& v : planned()["double_trees"])
    for (int tree = 0; tree < 2; ++tree) {
      const Json& t = v[tree == 0 ? "t0" : "t1"];
      const NcclTreeNode expected{t[0], {t[1].get<int>(), t[2].get<int>()}, t[3]};
      EXPECT_EQ(nccl_double_tree(v["nodes"], v["rank"], tree), expected) << v;
    }
}

}  // namespace
}  // namespace ghostrank
