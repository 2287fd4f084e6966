// Background traffic as programs: ranks, bytes and steps.
#include "profiles/planners/background/background.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "profiles/workload/workload_check.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::load_error;
using test::load_text;

// Two tensors with 1,000,003 parameters in all, on four GPUs of two nodes, and one storage node.
std::string ddp_job(const std::string& background) {
  return "schema: ghostrank/job/1\n"
         "model: {kind: layers, name: two, layers: [{parameters: [1000000, 3], forward_us: 100, "
         "backward_us: 200}]}\n"
         "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2, storage_nodes: 1}\n"
         "background: " +
         background + "\n";
}

Workload planned(const std::string& text) { return plan_workload(load_text(text).spec); }

std::uint16_t kind_of(const Workload& workload, const std::string& group) {
  const auto& names = workload.group_names;
  return static_cast<std::uint16_t>(std::find(names.begin(), names.end(), group) - names.begin());
}

// Bytes that a rank moves in an iteration, without requests.
std::uint64_t moved(const Workload& workload, int rank, std::size_t iteration,
                    const std::string& group) {
  const Role& role = workload.roles[workload.role_of[WorldRank(rank)]];
  const std::size_t number =
      std::min(program_number(workload, iteration), role.iterations.size() - 1);
  std::uint64_t bytes = 0;
  for (const auto& stream : role.iterations[number].streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective && op.group == kind_of(workload, group))
        bytes += op.count * bytes_of(op.dtype);
  return bytes;
}

TEST(Checkpoint, HoldsWeightsAndOptimizerStateOfEveryParameterOnce) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint}]"));
  EXPECT_EQ(w.ranks, 6);
  EXPECT_EQ(w.servers, 2);
  // fp32 weights and two fp32 moments, on four ranks, rounded up.
  for (const int rank : {0, 1, 2, 3})
    EXPECT_EQ(moved(w, rank, 5, "checkpoint"), (1000003ULL * 12 + 3) / 4);
}

// What a parameter takes in the memory of the ranks together, gradients left out.
TEST(Checkpoint, HoldsWhatTheFrameworkKeeps) {
  const std::uint64_t parameters = 124439808;
  const auto bytes = [](const std::string& framework, const std::string& precision,
                        const std::string& more = "") {
    return moved(
               planned("model: gpt2\ndevice: h100-sxm\nprecision: {parameters: bf16, " + precision +
                       "}\ncluster: {nodes: 1, gpus_per_node: 2, storage_nodes: 1}\n"
                       "parallel: {framework: " +
                       framework + "}\nbackground: [{pattern: checkpoint}]\n" + more),
               0, 0, "checkpoint") *
           2;
  };
  for (const char* framework : {"fsdp", "torchtitan", "ddp", "horovod"}) {
    EXPECT_EQ(bytes(framework, "gradients: fp32"), parameters * 12) << framework;
    EXPECT_EQ(bytes(framework, "gradients: fp32, optimizer: sgd"), parameters * 8) << framework;
  }
  EXPECT_EQ(bytes("ddp", "gradients: bf16"), parameters * 6);
  EXPECT_EQ(bytes("fsdp", "gradients: bf16"), parameters * 12);
  for (const char* framework : {"zero1", "zero2", "zero3"})
    EXPECT_EQ(bytes(framework, "gradients: bf16"), parameters * 14) << framework;
  EXPECT_EQ(bytes("phub", "gradients: fp32", "servers: {count: 1}\n"), parameters * 4);
}

// TorchRec's tables have row-wise Adagrad, the rest Adam.
TEST(Checkpoint, OfTorchRecHasTheRowsOfItsTables) {
  const Model model = test::shipped_model("dlrm-dcnv2");
  const Workload w = planned(
      "model: dlrm-dcnv2\ndevice: {base: h100-sxm, memory_bytes: 0}\n"
      "cluster: {nodes: 1, gpus_per_node: 8, storage_nodes: 1}\n"
      "parallel: {framework: torchrec}\nbackground: [{pattern: checkpoint}]\n");
  std::uint64_t rows = 0;
  for (const EmbeddingTable& table : model.recommendation->tables) rows += table.rows;
  const std::uint64_t dense = model.parameters() - rows * 128,
                      bytes = rows * (4 * 128 + 4) + dense * 12;
  EXPECT_EQ(bytes >> 30, 98u);
  EXPECT_EQ(moved(w, 0, 0, "checkpoint"), (bytes + 7) / 8);
}

TEST(Checkpoint, OfMegatronIsOnTheRanksOfEachStage) {
  // Llama-3 8B: 16 layers of 218,112,000 a stage; embedding and head of 128256 x 4096; one norm.
  const Workload w = planned(
      "schema: ghostrank/job/1\nmodel: llama3-8b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"
      "precision: {parameters: bf16, gradients: fp32}\n"
      "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1, storage_nodes: 3}\n"
      "parallel: {framework: megatron, tp: 2, pp: 2, dp: 2, sequence_parallel: true}\n"
      "background: [{pattern: checkpoint}]\n");
  const std::uint64_t layers = 16ULL * 218112000, words = 128256ULL * 4096;
  EXPECT_EQ(moved(w, 0, 0, "checkpoint"), (layers + words) * 14 / 4);
  EXPECT_EQ(moved(w, 7, 0, "checkpoint.2"), (layers + words + 4096) * 14 / 4);
  EXPECT_EQ(moved(w, 0, 0, "checkpoint.2"), 0U);
}

TEST(Checkpoint, IsWrittenInTheLastOfSoManyStepsAndThoseAfterIt) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint, every: 5, over: 2, bytes: 4001}]"));
  for (std::size_t i = 0; i < 30; ++i) {
    const std::uint64_t expected = i < 4 ? 0 : i % 5 == 4 ? 500 : i % 5 == 0 ? 501 : 0;
    EXPECT_EQ(moved(w, 3, i, "checkpoint"), expected) << "iteration " << i;
    EXPECT_EQ(moved(w, 5, i, "checkpoint"), expected) << "server, iteration " << i;
  }
}

TEST(Checkpoint, LeavesDdpItsFirstIterations) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint, every: 2}]"));
  const auto gradients = [&](std::size_t i) {
    return test::sums_of(w.roles[0].iterations[program_number(w, i)], w, "dp")
        .calls[Func::broadcast];
  };
  EXPECT_EQ(gradients(0), 0U);
  EXPECT_EQ(gradients(1), 2U);  // DDP rebuilds its buckets, and ranks write
  EXPECT_EQ(gradients(2), 0U);
  EXPECT_GT(moved(w, 0, 1, "checkpoint"), 0U);
  EXPECT_EQ(moved(w, 0, 2, "checkpoint"), 0U);
}

TEST(Checkpoint, GoesToTheServerOfItsRail) {
  const Workload w = planned(ddp_job("[{pattern: checkpoint}]"));
  int checked = 0;
  for (const Group& group : w.groups) {
    if (group.kind != kind_of(w, "checkpoint")) continue;
    const WorldRank server = group.members[0];
    EXPECT_EQ(group.members, (std::vector<WorldRank>{server, server - 4, server - 2}));
    ++checked;
  }
  EXPECT_EQ(checked, 2);
}

TEST(DataLoading, MovesTheSamplesOfAStep) {
  const Workload w = planned(ddp_job("[{pattern: data, bytes: 1000}]"));
  EXPECT_EQ(moved(w, 2, 7, "data"), 1000U);  // one sample per GPU
}

TEST(DataLoading, KnowsHowManyBytesATokenHas) {
  const Workload w = planned(
      "schema: ghostrank/job/1\nmodel: gpt2\ndevice: h100-sxm\n"
      "cluster: {nodes: 2, gpus_per_node: 1, storage_nodes: 1}\n"
      "parallel: {micro_batch: 4}\nbackground: [{pattern: data}]\n");
  EXPECT_EQ(moved(w, 0, 3, "data"), 4ULL * 1024 * 8);
}

TEST(Background, OfSeveralPatternsHasAProgramForEveryMixture) {
  const Workload w =
      planned(ddp_job("[{pattern: data, bytes: 1000, every: 2}, {pattern: checkpoint, every: 3}]"));
  EXPECT_EQ(w.cycle, 6U);
  for (std::size_t i = 3; i < 20; ++i) {
    EXPECT_EQ(moved(w, 0, i, "data") > 0, i % 2 == 1) << i;
    EXPECT_EQ(moved(w, 0, i, "checkpoint") > 0, i % 3 == 2) << i;
  }
}

TEST(Background, CutsChunksAndKeepsTheirSum) {
  const Workload w = planned(
      ddp_job("[{pattern: checkpoint, bytes: 40010, chunk: 4KiB, rate: 1Gbps, at_once: 2}]"));
  EXPECT_EQ(moved(w, 1, 0, "checkpoint"), 10003U);
  const Program& steady = w.roles[0].iterations.back();
  EXPECT_TRUE(test::streams_end(steady));
  EXPECT_EQ(test::sums_of(steady, w, "checkpoint").calls[Func::gather], 3U);
}

// ---- Among the ranks that train ----

// Six nodes of two GPUs that compute 300 us.
std::string wide_job(const std::string& background, const std::string& more = "", int nodes = 6) {
  return "schema: ghostrank/job/1\n"
         "model: {kind: layers, name: two, layers: [{parameters: [1000], forward_us: 100, "
         "backward_us: 200}]}\n"
         "cluster: {nodes: " +
         std::to_string(nodes) +
         ", gpus_per_node: 2, nics_per_node: 2}\nbackground: " + background + "\n" + more;
}

using Pairs = std::map<std::pair<int, int>, std::uint64_t>;  // bytes by sender and receiver

// What the groups of this name transfer in an iteration.
Pairs transferred(const Workload& w, const std::string& group, std::size_t iteration = 0) {
  Pairs bytes;
  for (const Group& g : w.groups) {
    if (g.kind != kind_of(w, group)) continue;
    const auto size = static_cast<int>(g.members.size());
    for (int i = 0; i < size; ++i) {
      const Role& role = w.roles[w.role_of[g.members[i]]];
      for (const auto& stream :
           role.iterations[std::min(program_number(w, iteration), role.iterations.size() - 1)]
               .streams)
        for (const Op& op : stream) {
          if (op.group != g.kind || op.count == 0) continue;
          const int self = g.members[i].value();
          if (op.kind == Op::Kind::send)
            bytes[{self, g.members[(i + op.peer + size) % size].value()}] += op.count;
          if (op.kind == Op::Kind::collective && i > 0)
            bytes[{self, g.members[0].value()}] += op.count;
        }
    }
  }
  return bytes;
}

Pairs transferred(const std::string& background, const std::string& group,
                  const std::string& more = "") {
  return transferred(planned(wide_job(background, more)), group);
}

TEST(Incast, IsOfOneRankOfEveryOtherNodeThenOfTheNext) {
  EXPECT_EQ(
      transferred("[{pattern: incast, bytes: 1000}]", "incast"),
      (Pairs{{{2, 0}, 1000}, {{4, 0}, 1000}, {{6, 0}, 1000}, {{8, 0}, 1000}, {{10, 0}, 1000}}));
  EXPECT_EQ(transferred("[{pattern: incast, fan_in: 2, bytes: 9MiB}]", "incast"),
            (Pairs{{{2, 0}, 9 << 20}, {{4, 0}, 9 << 20}}));
  const Pairs seven = transferred("[{pattern: incast, fan_in: 7, bytes: 10}]", "incast");
  EXPECT_EQ(seven.size(), 7u);
  EXPECT_EQ(seven.count({3, 0}), 1u);
  EXPECT_EQ(seven.count({5, 0}), 1u);
  EXPECT_EQ(seven.count({7, 0}), 0u);
}

TEST(Incast, GivesItsRanksARoleOfTheirOwn) {
  const Workload plain = planned(wide_job("[]"));
  const Workload w = planned(wide_job("[{pattern: incast, fan_in: 2, bytes: 10}]"));
  ASSERT_EQ(plain.roles.size(), 1u);
  std::vector<std::string> names;
  for (const Role& role : w.roles) names.push_back(role.name);
  const std::string name = plain.roles[0].name;
  EXPECT_EQ(names,
            (std::vector<std::string>{name + ", receives incast", name, name + ", sends incast"}));
  EXPECT_EQ(w.ranks, plain.ranks);
  EXPECT_EQ(w.servers, 0);
}

TEST(Permutation, SendsEveryRankToOneOfAnotherNodeAsTheSeedDraws) {
  const auto drawn = [](int seed, const char* list = "[{pattern: permutation, bytes: 5000}]",
                        const char* name = "permutation") {
    return transferred(list, name, "run: {seed: " + std::to_string(seed) + "}\n");
  };
  const Pairs pairs = drawn(1);
  std::set<int> senders, receivers;
  for (const auto& [ends, bytes] : pairs) {
    EXPECT_EQ(bytes, 5000u);
    EXPECT_NE(ends.first / 2, ends.second / 2);
    EXPECT_EQ(ends.first % 2, ends.second % 2) << "stays on its rail";
    senders.insert(ends.first);
    receivers.insert(ends.second);
  }
  EXPECT_EQ(pairs.size(), 12u);
  EXPECT_EQ(senders.size(), 12u);
  EXPECT_EQ(receivers.size(), 12u);
  EXPECT_EQ(drawn(1), pairs);
  std::set<Pairs> different;
  for (int seed = 1; seed <= 10; ++seed) different.insert(drawn(seed));
  EXPECT_GT(different.size(), 5u);
  const char* twice = "[{pattern: permutation, bytes: 5000}, {pattern: permutation, bytes: 5000}]";
  EXPECT_NE(drawn(1, twice, "permutation.2"), drawn(1, twice));
}

TEST(Bisection, ExchangesBetweenTheHalvesOfTheNodes) {
  Pairs expected;
  for (int rank = 0; rank < 12; ++rank) expected[{rank, (rank + 6) % 12}] = 5'000'000;
  EXPECT_EQ(transferred("[{pattern: bisection, bytes: 5000000}]", "bisection"), expected);
}

TEST(PatternsOfTraffic, CarryWhatTheirRateDoesWhileAStepComputes) {
  // 8 Gb/s carry 300 kB in a step of 300 us, and as much in each of two.
  EXPECT_EQ(transferred("[{pattern: incast, fan_in: 1, rate: 8Gbps}]", "incast"),
            (Pairs{{{2, 0}, 300'000}}));
  const Workload w = planned(wide_job("[{pattern: bisection, every: 2, over: 2, rate: 8Gbps}]"));
  EXPECT_EQ(transferred(w, "bisection", 1).at({0, 6}), 300'000u);
  EXPECT_EQ(transferred(w, "bisection", 2).at({0, 6}), 300'000u);
}

TEST(PatternsOfTraffic, GoBesideStorageInTheirSteps) {
  const Workload w = plan_workload(
      load_text(wide_job("[{pattern: checkpoint, bytes: 12000}, {pattern: permutation, bytes: 70, "
                         "every: 2}, {pattern: incast, bytes: 5, every: 3, over: 3}]"),
                {"cluster.storage_nodes=1"})
          .spec);
  EXPECT_EQ(w.servers, 2);
  EXPECT_EQ(moved(w, 3, 0, "checkpoint"), 1000u);
  EXPECT_EQ(transferred(w, "permutation", 1).size(), 12u);
  EXPECT_EQ(transferred(w, "permutation", 2).size(), 0u);
  std::uint64_t of_three = 0;
  for (const std::size_t step : {2, 3, 4}) of_three += transferred(w, "incast", step)[{2, 0}];
  EXPECT_EQ(of_three, 5u);
  for (const Role& role : w.roles)
    for (const Program& program : role.iterations) EXPECT_TRUE(test::streams_end(program));
}

TEST(PatternsOfTraffic, AreRefusedWithWhatToDo) {
  const auto error = [](const std::string& background, int nodes = 6) {
    const std::string text = test::error_of([&] { planned(wide_job(background, "", nodes)); });
    return text.substr(std::min(text.size(), text.find("job.yaml")));
  };
  EXPECT_EQ(error("[{pattern: incast}]"),
            "job.yaml:4:24: pattern: incast has neither bytes nor a rate; add one, as in {pattern: "
            "incast, bytes: 64MiB}");
  EXPECT_EQ(error("[{pattern: incast, fan_in: 11, bytes: 1}]"),
            "job.yaml:4:14: fan_in is 11 but the nodes without the receiver have 10 ranks; lower "
            "it");
  EXPECT_EQ(error("[{pattern: data, fan_in: 7}]"),
            "job.yaml:4:38: fan_in means nothing to pattern: data; leave it out, or use pattern: "
            "incast");
  EXPECT_EQ(error("[{pattern: permutation, bytes: 9, at_once: 2}]"),
            "job.yaml:4:56: at_once means nothing to pattern: permutation, whose messages leave "
            "one after the other; leave it out");
  EXPECT_EQ(error("[{pattern: permutation, bytes: 9}]", 1),
            "job.yaml:4:14: pattern: permutation goes between nodes and the job has one; give it "
            "more, by cluster.nodes or by its nodes in jobs");
  EXPECT_EQ(error("[{pattern: bisection, bytes: 9}]", 3),
            "job.yaml:4:14: pattern: bisection needs two halves and there are 3 nodes; take an "
            "even number");
  EXPECT_EQ(error("[{pattern: bisection, bytes: 1GiB, chunk: 1}]"),
            "job.yaml:4:14: 1073741824 bytes of a rank are more than 100000 chunks; use a larger "
            "chunk");
  EXPECT_EQ(load_error(wide_job("[{pattern: ring, bytes: 1}]")),
            "job.yaml:4:24: pattern is 'ring'; allowed: checkpoint, data, incast, permutation, "
            "bisection");
}

// K-FAC updates its factors and inverses now and then; DDP may replay recorded steps.
TEST(Background, KeepsTheOrderOfAPlanThatHasOne) {
  const std::string kfac =
      "model: cifar-resnet20\ndevice: rtx2080ti\n"
      "parallel: {framework: kfac, variant: mpd, fac_update_freq: 2, kfac_update_freq: 4}\n";
  const std::string recorded =
      "model: {kind: layers, layers: [{parameters: [1000], forward_us: 1, backward_us: 1}], "
      "recorded_ns: [[[1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2], [3, 3, 3, 3, 3, 3], "
      "[4, 4, 4, 4, 4, 4]]]}\n";
  for (const std::string& job : {kfac, recorded}) {
    const auto with = [&](const std::string& background) {
      return planned(job + "cluster: {nodes: 2, gpus_per_node: 2}\nbackground: " + background +
                     "\n");
    };
    const Workload plain = with("[]"), w = with("[{pattern: incast, bytes: 1000, every: 3}]");
    EXPECT_EQ(plain.cycle, 4u);
    EXPECT_EQ(w.cycle, 12u);
    for (std::size_t i = 0; i < 40; ++i) {
      const auto& expected = plain.roles[0].iterations[program_number(plain, i)].streams;
      const auto& streams = w.roles[0].iterations[program_number(w, i)].streams;
      for (std::size_t s = 0; s < expected.size(); ++s)
        EXPECT_TRUE(std::equal(streams[s].begin(), streams[s].end(), expected[s].begin(),
                               expected[s].end()))
            << "iteration " << i;
      EXPECT_EQ(transferred(w, "incast", i).empty(), i % 3 != 2) << "iteration " << i;
    }
  }
}

TEST(Background, IsRefusedWithWhatToDo) {
  const auto plan_error = [](const std::string& text) {
    return test::error_of([&] { planned(text); });
  };
  EXPECT_NE(plan_error(ddp_job("[{pattern: data}]")).find("add bytes, as in {pattern: data"),
            std::string::npos);
  EXPECT_NE(plan_error(ddp_job("[]")).find("cluster.storage_nodes is 1 but nothing is stored"),
            std::string::npos);
  EXPECT_NE(load_error(ddp_job("[{pattern: checkpoint, over: 2}]")).find("over is 2 but every 1"),
            std::string::npos);
  EXPECT_NE(load_error(ddp_job("{pattern: data}")).find("write a list"), std::string::npos);
  EXPECT_NE(load_error(ddp_job("[{every: 2}]")).find("no pattern"), std::string::npos);
  EXPECT_NE(plan_error(ddp_job("[{pattern: checkpoint, bytes: 1GiB, chunk: 1}]"))
                .find("use a larger chunk"),
            std::string::npos);
  EXPECT_NE(plan_error(ddp_job("[{pattern: checkpoint, every: 99991}, {pattern: checkpoint, "
                               "every: 99989}]"))
                .find("choose multiples of one number"),
            std::string::npos);
  EXPECT_NE(plan_error(wide_job("[{pattern: incast, bytes: 1GiB, every: 100000, over: 100000}]"))
                .find("100003 steps differ from each other"),
            std::string::npos);
  EXPECT_NE(plan_error("model: cifar-resnet20\ndevice: rtx2080ti\ncluster: {nodes: 2}\n"
                       "parallel: {framework: kfac, fac_update_freq: 999, kfac_update_freq: 1000}\n"
                       "background: [{pattern: incast, bytes: 1}]\n")
                .find("the values of every and the plan's own 999000 steps coincide again after"),
            std::string::npos);
}

TEST(Background, HasARateThatTimesAndBytesCanHold) {
  const auto error = [](const std::string& background, auto plan) {
    const std::string text = test::error_of([&] { plan(load_text(wide_job(background)).spec); });
    return text.substr(std::min(text.size(), text.find("job.yaml")));
  };
  for (const auto plan : {plan_workload, plan_background})
    EXPECT_EQ(error("[{pattern: incast, bytes: 64MiB, rate: 1bps}]", plan),
              "job.yaml:4:14: at 1bps the 67108864 bytes of a rank in one step take longer than a "
              "day; raise rate");
  EXPECT_NE(error("[{pattern: incast, every: 200, over: 200, rate: 1000000Tbps}]", plan_workload)
                .find("at most 1125899906842624 are supported; lower rate"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
