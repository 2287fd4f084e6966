// NCCL's schedules against numbers worked out from the same rules without this code:
// data/nccl_vectors.json.
//
// Rings: the sends of the rank at position 1, as runs of equal messages by channel.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "collectives/nccl/nccl.h"
#include "collectives/nccl/schedules/p2p_split.h"
#include "collectives/schedule.h"
#include "tests/collectives/nccl/pat_sends.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using nccl_testing::nccl_node;

using Json = nlohmann::json;

const Json& vectors() {
  static const Json kVectors = [] {
    std::ifstream file(GHOSTRANK_SOURCE_DIR "/tests/collectives/data/nccl_vectors.json");
    return Json::parse(file);
  }();
  return kVectors;
}

// [[bytes, repeat], ...]
void add_run(Json& runs, std::uint64_t bytes) {
  if (!runs.empty() && runs.back()[0] == bytes)
    runs.back()[1] = runs.back()[1].get<int>() + 1;
  else
    runs.push_back({bytes, 1});
}

// [channel, [[bytes, repeat], ...]] for every channel on which the rank sends.
Json sends_of(const Schedule& schedule, GroupRank rank) {
  std::map<int, Json> by_channel;
  const Collective& c = schedule.collective();
  for (int a = 0; a < schedule.actors(rank); ++a) {
    const Actor actor = schedule.actor(rank, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule.step(rank, a, k);
      for (std::uint32_t s = 0; s < step.slices && !step.send_to.empty(); ++s) {
        Json& runs = by_channel.try_emplace(actor.channel, Json::array()).first->second;
        add_run(runs, message_bytes(schedule.protocol(), slice_of(step.send, step, s).count,
                                    c.element_bytes));
      }
    }
  }
  Json all = Json::array();
  for (const auto& [channel, runs] : by_channel) all.push_back({channel, runs});
  return all;
}

Func func_in_nccl(const std::string& name) {
  const std::map<std::string, Func> names{{"allreduce", Func::all_reduce},
                                          {"allgather", Func::all_gather},
                                          {"reducescatter", Func::reduce_scatter},
                                          {"broadcast", Func::broadcast}};
  return names.at(name);
}

TEST(NcclVectors, OfRingsAreSentMessageByMessage) {
  ASSERT_EQ(vectors()["ring_v2_30"].size(), 540U);
  for (const Json& v : vectors()["ring_v2_30"]) {
    const GroupRank rank = v["ring_index"];
    const Collective c{func_in_nccl(v["func"]), v["nranks"], v["count"], v["elt"], rank};
    Communicator comm;
    comm.channels = v["commChannels"];
    comm.max_channels = v["nMaxChannels"];
    comm.protocol = protocol_named(v["proto"].get<std::string>()).value();
    const auto schedule = find_algorithm("nccl-2.30", c.func, "ring")->make(c, comm);
    Json input = v;
    input.erase("sends");
    ASSERT_EQ(sends_of(*schedule, rank), v["sends"]) << input;
  }
}

TEST(NcclVectors, OfDoubleTreesAreTheTrees) {
  const auto node_of = [](const Json& v) {
    return NcclTreeNode{
        v[0], {v[1].get<int>(), v[2].get<int>()}, v[3].is_null() ? -1 : v[3].get<int>()};
  };
  ASSERT_EQ(vectors()["dtree"].size(), 8U);
  for (const auto& [nodes, tree] : vectors()["dtree"].items())
    for (const Json& v : tree) {
      EXPECT_EQ(nccl_double_tree(std::stoi(nodes), v["rank"], 0), node_of(v["t0"])) << nodes << v;
      EXPECT_EQ(nccl_double_tree(std::stoi(nodes), v["rank"], 1), node_of(v["t1"])) << nodes << v;
    }
}

TEST(NcclVectors, OfHgxRingsAreTheOrderOfLocalRanks) {
  ASSERT_FALSE(vectors()["hgx_ring_crossnic2"].empty());
  for (const Json& v : vectors()["hgx_ring_crossnic2"]) {
    const NcclList list =
        nccl_ring_list(nccl_node("hgx-h100-400g", 8), v["channel"], v["node_parity"], 8);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(list.local_at(i), v["gpu_order"][i]) << v;
      EXPECT_EQ(list.position_of(list.local_at(i)), i);
    }
  }
}

TEST(NcclVectors, OfPointToPointRoundsAreTheRounds) {
  ASSERT_EQ(vectors()["p2p_schedule"].size(), 11U);
  for (const Json& v : vectors()["p2p_schedule"]) {
    const int nodes = v["nodes"], per_node = v["ppn"], size = nodes * per_node;
    std::vector<std::int32_t> node_of;
    for (int r = 0; r < size; ++r) node_of.push_back(r / per_node);
    const NcclRounds rounds(NcclNodes(size, node_of));
    EXPECT_EQ(rounds.group(), v["group"]);
    const GroupRank rank = v["rank"];
    std::vector<int> sends, recvs, bases;
    for (int round = 0; round < size; ++round) {
      sends.push_back(rounds.send_to(rank, round));
      recvs.push_back(rounds.recv_from(rank, round));
      bases.push_back(rounds.base(round, 16));
      EXPECT_EQ(rounds.round_of(rank, sends.back()), round);
      EXPECT_EQ(rounds.recv_from(sends.back(), round), rank);
    }
    EXPECT_EQ(Json(sends), v["send"]) << v;
    EXPECT_EQ(Json(recvs), v["recv"]) << v;
    EXPECT_EQ(Json(bases), v["base16"]) << v;
  }
}

TEST(NcclVectors, OfPointToPointPartsAreTheMessages) {
  ASSERT_EQ(vectors()["p2p_messages_v2_30"].size(), 14U);
  for (const Json& v : vectors()["p2p_messages_v2_30"]) {
    const std::uint64_t bytes = v["bytes"];
    const NcclP2pSplit split =
        nccl_p2p_split(bytes, {16, v["nChMin"], v["nChMax"]}, v["nodes"] == 1, true);
    Json parts = Json::array();
    for (int p = 0; p < split.parts; ++p) {
      const std::uint64_t begin = static_cast<std::uint64_t>(p) * split.part_bytes;
      const std::uint64_t end = std::min(bytes, begin + split.part_bytes);
      Json runs = Json::array();
      for (std::uint64_t at = begin; at < end || at == begin; at += split.message_bytes)
        add_run(runs, std::min(split.message_bytes, end - at));
      parts.push_back(runs);
    }
    EXPECT_EQ(parts, v["parts"]) << v;
  }
}

// From the described node by way of the search to the tuner's choice.
TEST(NcclVectors, OfChoicesAreTheAlgorithmsPlayed) {
  ASSERT_EQ(vectors()["choices"].size(), 266U);
  for (const char* library : nccl_testing::kLibraries)
    for (const Json& v : vectors()["choices"]) {
      Communicator comm;
      comm.node = v["node"];
      comm.channels = 0;
      const int gpus = v["gpus"], ranks = gpus * v["nodes"].get<int>();
      for (int r = 0; r < ranks; ++r) {
        comm.node_of.push_back(r / gpus);
        comm.gpu_of.push_back(r % gpus);
      }
      const std::string name = v["func"];
      int func = 0;
      while (func < kFuncs && name_of(static_cast<Func>(func)) != name) ++func;
      ASSERT_LT(func, kFuncs) << name;
      const Collective c{static_cast<Func>(func), ranks, v["count"], 4};
      EXPECT_EQ(find_algorithm(library, c.func, "auto")->make(c, comm)->played(),
                v["choice"].get<std::string>())
          << v << library;
    }
}

TEST(NcclVectors, OfPatAreTheMessages) {
  ASSERT_EQ(vectors()["pat"].size(), 24U);
  for (const Json& v : vectors()["pat"]) EXPECT_EQ(test::pat_sends(v), v["sends"]) << v;
}

}  // namespace
}  // namespace ghostrank
