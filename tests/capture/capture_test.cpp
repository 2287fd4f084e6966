// From the records of a run to a profile, and from the profile to the same steps.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/capture/gradients.h"
#include "profiles/capture/merge.h"
#include "profiles/planners/ddp.h"
#include "profiles/planners/plan.h"
#include "tests/capture/records.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::Outcome;
using test::shell;

class Capture : public testing::Test {
 protected:
  std::vector<CapturedRank> made(const test::MadeRun& of = {}) {
    for (int rank : {0, 1})
      folder.write("rank" + std::to_string(rank) + ".jsonl", test::made_records(rank, of));
    return read_capture(folder.path(""));
  }
  std::string refusal(const std::string& from, const std::string& to) {
    std::string text = test::made_records(0);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    folder.write("rank1.jsonl", test::made_records(1));
    folder.write("rank0.jsonl", text);
    return test::error_of([&] { merge_capture(read_capture(folder.path(""))); });
  }
  test::Folder folder;
};

TEST_F(Capture, FindsTheDelaysOfEveryStepAndRank) {
  const Captured found = merge_capture(made());
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(found.layers[0].name, "a");
  EXPECT_EQ(found.layers[1].parameters, (std::vector<std::uint64_t>{499900, 100}));
  EXPECT_EQ(found.buckets, (std::vector<std::size_t>{2, 2}));
  ASSERT_EQ(found.step.size(), 16u);  // 4 blocks of 5, the first step of each left out
  ASSERT_EQ(found.held_out.size(), 16u);
  EXPECT_EQ(found.step[1], test::step_of(7));
  EXPECT_EQ(found.held_out[0], test::step_of(11));
  for (const int rank : {0, 1}) {
    const CaptureDelays& one = found.delays[static_cast<std::size_t>(rank)][1];
    EXPECT_EQ(one.before, test::kBefore);
    EXPECT_EQ(one.forward[0], test::kForwardA + (rank == 1 ? test::kLate : 0));
    EXPECT_EQ(one.forward[1], test::kForwardB);
    EXPECT_EQ(one.loss, test::kLoss);
    EXPECT_EQ(one.backward[1], test::backward_of_last(7));
    EXPECT_EQ(one.backward[0], test::kBackwardA);
    EXPECT_EQ(one.after, test::kAfter);
    EXPECT_EQ(one.optimizer, test::kOptimizer);
  }
}

TEST_F(Capture, FindsTheCostOfCalls) {
  const CallCost one = call_cost(merge_capture(made()).reductions);
  EXPECT_FALSE(one.per_call_known);  // every span holds both buckets
  EXPECT_NEAR(one.per_byte, 8e-9, 0.02 * 8e-9);

  std::vector<std::vector<CaptureReduction>> apart;
  for (int i = 0; i < 9; ++i)
    apart.push_back({{0, 1'000'000, 0, 8'500'000}, {1, 100'000, 20'000'000, 21'300'000}});
  const CallCost two = call_cost(apart);
  EXPECT_TRUE(two.per_call_known);
  EXPECT_NEAR(two.per_call, 0.5e-3, 1e-6);
  EXPECT_NEAR(two.per_byte, 8e-9, 1e-11);
}

TEST_F(Capture, AlignsTheClocksOfMachines) {
  const Captured here = merge_capture(made());
  const Captured there = merge_capture(made({.clock_shift = 123'456'789'000}));
  EXPECT_GT(there.clock_error, 0);
  ASSERT_EQ(there.step.size(), here.step.size());
  for (std::size_t i = 0; i < here.step.size(); ++i) EXPECT_EQ(there.step[i], here.step[i]);
  EXPECT_EQ(there.delays[1][0].forward, here.delays[1][0].forward);
}

TEST_F(Capture, GivesAProfileThatPlaysEveryRecordedStep) {
  const Captured found = merge_capture(made());
  const std::string text = capture_profile(found, {1e9, 0}, "a \"net\"", {"one\ncomment"});
  const Model model = test::model_from(text);
  EXPECT_EQ(model.name, "a \"net\"");
  EXPECT_EQ(model.recorded.size(), 2u);
  EXPECT_EQ(model.recorded[1][1].layers[0].forward,
            (test::kBefore + test::kForwardA + test::kLate) * 1000);
  EXPECT_EQ(model.capture->held_out.size(), 16u);

  folder.write("net.yaml", text);
  const LoadedJob job = test::load_text(
      "model: '" + folder.path("net.yaml") +
      "'\ncluster: {nodes: 5, gpus_per_node: 1, nics_per_node: 1}\nparallel: {framework: ddp}");
  const Workload workload = plan_workload(job.spec);
  EXPECT_EQ(workload.roles.size(), 5u);  // two ranks, shifted three times
  EXPECT_EQ(workload.cycle, 16u);
  EXPECT_EQ(workload.roles[0].iterations.size(), 18u);
  // Rank 2 plays what rank 0 does, a third of the steps later.
  const auto longest = [&](std::size_t role, std::size_t program) {
    const Program& one = workload.roles[role].iterations[program];
    Picoseconds sum = 0;
    for (const Op& op : one.streams[0])
      if (op.kind == Op::Kind::compute) sum += op.duration;
    return sum;
  };
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(longest(2, 2 + i), longest(0, 2 + (i + 5) % 16));
}

TEST_F(Capture, PlaysBucketsAsTheyWereUnlessTheJobSaysOtherwise) {
  const std::string text = capture_profile(merge_capture(made()), {1e9, 0}, "net", {});
  folder.write("net.yaml", text);
  const std::string job = "model: '" + folder.path("net.yaml") +
                          "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n";
  const auto reductions = [&](const std::string& parallel) {
    const LoadedJob loaded = test::load_text(job + "parallel: {framework: ddp" + parallel + "}");
    const Workload workload = plan_workload(loaded.spec);
    std::vector<std::uint64_t> counts;
    for (const Op& op : workload.roles[0].iterations.back().streams[1])
      if (op.kind == Op::Kind::collective) counts.push_back(op.count);
    return counts;
  };
  EXPECT_EQ(reductions(""), (std::vector<std::uint64_t>{500000, 250000}));
  EXPECT_EQ(reductions(", first_bucket_mb: 100"), (std::vector<std::uint64_t>{750000}));
}

// Two ranks look at a bucket each in two steps: 2 zeros, magnitudes from 1/4 to 2^-1.75 and from
// 1/2.
TEST_F(Capture, CountsMagnitudesAndBlocksOfGradients) {
  const std::string looked =
      R"({"magnitudes":[[3,1,[[-8,60],[-4,39]]],[2,0,[[-8,1]]]],"blocks":[1,2,7],"block":10})"
      "\n";
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl",
                 test::made_records(rank) + looked + (rank == 0 ? looked : ""));
  const std::vector<CapturedRank> ranks = read_capture(folder.path(""));
  EXPECT_EQ(gradient_magnitudes(ranks),
            "magnitude,count\n2.32830644e-10,3\n0.25,0\n0.297301779,183\n0.5,0\n0.594603558,117\n");
  EXPECT_EQ(gradient_overlap(ranks),
            "# Blocks of 10 elements of DDP's buckets.\n"
            "schema: ghostrank/overlap/1\nshares: [0.1, 0.2, 0.7]\n");
  EXPECT_DOUBLE_EQ(gradient_facts(ranks).density, 0.8);
  EXPECT_DOUBLE_EQ(gradient_facts(ranks).zeros, 3.0 / 303);

  const auto refused = [&](const std::string& line) {
    folder.write("rank0.jsonl", test::made_records(0) + line + "\n");
    return test::error_of([&] { read_capture(folder.path("")); });
  };
  EXPECT_NE(refused(R"({"magnitudes":[[3,101,[]]],"blocks":[1,2,7],"block":10})")
                .find("rank0.jsonl:51:1: magnitudes of 101 elements of a parameter that has 100"),
            std::string::npos);
  EXPECT_NE(refused(R"({"magnitudes":[[3,0,[[9999,1]]]],"blocks":[1,2,7],"block":10})")
                .find("k is no integer from -4400 to 4400"),
            std::string::npos);
  EXPECT_NE(refused(R"({"magnitudes":[],"blocks":[1,2],"block":10})")
                .find("blocks is no list of 3 numbers"),
            std::string::npos);
  folder.write("rank0.jsonl", test::made_records(0));
  EXPECT_NE(test::error_of([&] {
              gradient_overlap(read_capture(folder.path("")));
            }).find("capture with --gradients"),
            std::string::npos);
}

// Each rank looks at all four parameters; those of a layer get ready bias first.
TEST_F(Capture, WritesAHistogramForEachTensorOfItsProfile) {
  const std::string looked =
      R"({"magnitudes":[[0,2,[]],[1,0,[[-8,1]]],[2,0,[[-8,60]]],[3,1,[[-8,60],[-4,39]]]],)"
      R"("blocks":[1,2,7],"block":10})"
      "\n";
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", test::made_records(rank) + looked);
  const std::vector<CapturedRank> ranks = read_capture(folder.path(""));
  const Captured captured = merge_capture(ranks);
  const std::string histograms = tensor_magnitudes(ranks, captured.layers);
  EXPECT_EQ(histograms,
            "magnitude,count,tensor\n"
            "2.32830644e-10,4,a.0\n"
            "0.25,0,a.1\n0.297301779,2,a.1\n"
            "0.25,0,b.0\n0.297301779,120,b.0\n"
            "2.32830644e-10,2,b.1\n0.25,0,b.1\n0.297301779,120,b.1\n0.5,0,b.1\n"
            "0.594603558,78,b.1\n");
  const std::string model =
      folder.write("net.yaml", capture_profile(captured, {1e9, 0}, "net", {}));
  const std::string file = folder.write("run.tensors.csv", histograms);
  const LoadedJob job = test::load_text(
      "model: '" + model + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncompression: {method: dgc}\n" +
      "tensors: {distribution: 'measured " + file + "'}\n");
  const GradientLaws& laws = job.spec.gradients;
  ASSERT_EQ(laws.parts.size(), 4u);  // the last tensor first
  EXPECT_EQ(laws.parts[0].elements, 100u);
  EXPECT_EQ(laws.laws[laws.parts[0].law].bins.back().count, 78);
  EXPECT_EQ(laws.parts[3].elements, 249'900u);
  EXPECT_EQ(laws.laws[laws.parts[3].law].bins,
            (std::vector<GradientLaw::Bin>{{2.32830644e-10, 4}}));
  EXPECT_GT(plan_workload(job.spec).compressed.size(), 0u);
}

TEST_F(Capture, RefusesWhatItCannotPlay) {
  EXPECT_NE(refusal(R"("backend":"gloo")", R"("backend":"nccl")").find("gloo's is captured"),
            std::string::npos);
  EXPECT_NE(refusal(R"("device":"cpu")", R"("device":"cuda")").find("launches and not kernels"),
            std::string::npos);
  EXPECT_NE(refusal(R"("forwards":1)", R"("forwards":4)").find("accumulation"), std::string::npos);
  EXPECT_NE(refusal(R"([1,"float32",250000,[1,0]])", R"([1,"float32",250000,[1,1]])").find("rank0"),
            std::string::npos);
  EXPECT_NE(refusal(R"("world":2)", R"("world":3)").find("same run"), std::string::npos);
  EXPECT_NE(refusal(R"({"step":7)", R"({"step":9)").find("step 9 where 7 is due"),
            std::string::npos);
  EXPECT_NE(refusal(R"("modules":[[0,)", R"("modules":[[99,)").find("modules is no integer"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"step":0,"mode":"warm")", R"({"refused":"two models","mode":"warm")")
                .find("/rank0.jsonl:2:1: not captured: 'two models'"),
            std::string::npos);
}

TEST_F(Capture, IsHeldAgainstTheStepsThatItLeftOut) {
  made();
  const std::string profile = folder.path("net.profile.yaml");
  const Outcome captured = shell(GHOSTRANK_BINARY " profile capture --merge '" + folder.path("") +
                                 "' -o '" + profile + "'");
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_NE(captured.text.find("16 held out"), std::string::npos) << captured.text;
  const Outcome checked =
      shell(GHOSTRANK_BINARY " profile check --within 0.01 --json - '" + profile + "'");
  ASSERT_EQ(checked.status, 0) << checked.text;
  const json found = json::parse(checked.text);
  EXPECT_LT(std::abs(found["rows"][0]["error"].get<double>()), 0.01);
  EXPECT_NEAR(found["rows"][0]["measured"].get<double>(), 37.88e-3, 0.1e-3);
  EXPECT_EQ(shell(GHOSTRANK_BINARY " profile check --within 0.0000001 '" + profile + "'").status,
            1);
}

// The script as it is, and with the hooks: the same training, and a profile of it.
TEST_F(Capture, OfARealRunChangesNothingAndCanBePlayed) {
  std::string python;
  for (const char* one : {"python3", "/usr/bin/python3"})
    if (python.empty() && shell(std::string(one) + " -c 'import torch.distributed'").status == 0)
      python = one;
  if (python.empty()) GTEST_SKIP() << "there is no PyTorch (python3-torch)";
  const std::string script = "'" GHOSTRANK_SOURCE_DIR "/tests/capture/two_ranks.sh' " + python +
                             " '" GHOSTRANK_SOURCE_DIR "/tests/capture/train.py' ";
  const Outcome alone = shell(script + "'" + folder.path("alone.json") + "'");
  ASSERT_EQ(alone.status, 0) << alone.text;
  const std::string profile = folder.path("run.profile.yaml");
  const Outcome captured =
      shell(GHOSTRANK_BINARY " profile capture --block 4 -o '" + profile + "' --gradients '" +
            folder.path("run") + "' -- " + script + "'" + folder.path("captured.json") + "'");
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_EQ(test::read_file(folder.path("captured.json")),
            test::read_file(folder.path("alone.json")));
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --json - '" + profile + "'");
  ASSERT_EQ(checked.status, 0) << checked.text;
  const json found = json::parse(checked.text);
  EXPECT_EQ(found["ranks"], 2);
  EXPECT_EQ(found["buckets_by_rule"], true);
  EXPECT_GE(found["held_out_steps"].get<int>(), 6);

  // What the gradients looked like, in a job. Inputs behind a ReLU leave rows of weights at zero in
  // some steps, and the biases of dead units.
  const LoadedJob job = test::load_text(
      "model: '" + profile + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncollectives: {allreduce: omnireduce}\nservers: {count: 1}\n" +
      "tensors: {overlap: '" + folder.path("run.overlap.yaml") + "'}\n");
  EXPECT_GT(job.spec.tensors->density, 0.5);
  EXPECT_LE(job.spec.tensors->density, 1);
  const LoadedJob compressed = test::load_text(
      "model: '" + profile + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncompression: {method: dgc, ratio: 0.01}\n" +
      "tensors: {distribution: 'measured " + folder.path("run.magnitudes.csv") + "'}\n");
  // Each rank looked twice at every parameter.
  double elements = 0, expected = 0;
  for (const GradientLaw::Bin& bin : compressed.spec.gradients.laws.front().bins)
    elements += bin.count;
  for (const double one : {64 * 700, 700, 700, 700, 700 * 700, 700, 7000, 10}) expected += one;
  EXPECT_EQ(std::fmod(elements, 2 * expected), 0);
  const LoadedJob by_tensor = test::load_text(
      "model: '" + profile + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncompression: {method: dgc, ratio: 0.01}\n" +
      "tensors: {distribution: 'measured " + folder.path("run.tensors.csv") + "'}\n");
  const GradientLaws& laws = by_tensor.spec.gradients;
  EXPECT_EQ(laws.parts.size(), 8u);
  for (const GradientLaws::Part& part : laws.parts) {
    double looked = 0;
    for (const GradientLaw::Bin& bin : laws.laws[part.law].bins) looked += bin.count;
    EXPECT_EQ(std::fmod(looked, 2 * static_cast<double>(part.elements)), 0);
  }
}

}  // namespace
}  // namespace ghostrank
