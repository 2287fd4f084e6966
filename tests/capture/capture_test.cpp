// From the records of a run to a profile, and from the profile to the same steps.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/capture/gradients.h"
#include "profiles/capture/merge.h"
#include "profiles/capture/profile_text.h"
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
  // The command, on the records that are there.
  Outcome merged_into(const std::string& profile) {
    return shell(GHOSTRANK_BINARY " profile capture --merge '" + folder.path("") + "' -o '" +
                 profile + "'");
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

// A layer is ready when its last gradient is, so the hooks record only that gradient.
TEST_F(Capture, NeedsOnlyTheLastGradientOfALayer) {
  const Captured all = merge_capture(made());
  const std::regex not_last(R"(\[[13],[0-9]+\],)"), none_of_b(R"(\[[23],[0-9]+\],(?=\[))");
  std::string without_b;
  for (int rank : {0, 1}) {
    const std::string text = test::made_records(rank);
    const std::string last = std::regex_replace(text, not_last, "");
    ASSERT_LT(last.size(), text.size());
    folder.write("rank" + std::to_string(rank) + ".jsonl", last);
    without_b = std::regex_replace(last, none_of_b, "");
    ASSERT_LT(without_b.size(), last.size());
  }
  const Captured found = merge_capture(read_capture(folder.path("")));
  ASSERT_EQ(found.delays.size(), all.delays.size());
  for (std::size_t rank = 0; rank < all.delays.size(); ++rank)
    for (std::size_t step = 0; step < all.delays[rank].size(); ++step)
      EXPECT_EQ(found.delays[rank][step].backward, all.delays[rank][step].backward);
  folder.write("rank1.jsonl", without_b);
  EXPECT_NE(test::error_of([&] {
              merge_capture(read_capture(folder.path("")));
            }).find("parameter 'b.bias' got no gradient; capture such a run with --layers buckets"),
            std::string::npos);
}

// Without hooks of modules and gradients: the backward lasts until buckets are launched.
TEST_F(Capture, HasBucketsAsLayersOnRequest) {
  const auto by_bucket = [](std::string text) {
    text.replace(text.find(R"("mode":"hooks")"), 14, R"("mode":"hooks","layers":"buckets")");
    for (const auto& [from, to] :
         {std::pair{R"x("(modules|gradients)":\[\[[^a-z]*\]\])x", R"("$1":[])"},
          {R"(,\[1,1000000,[0-9]+,[0-9]+\])", ""},
          {R"(\[0,"float32",500000,\[3,2\]\],.*\]\])", R"([0,"float32",750000,[3,2,1,0]]])"}})
      text = std::regex_replace(text, std::regex(from), to);
    return text;
  };
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", by_bucket(test::made_records(rank)));
  const Captured found = merge_capture(read_capture(folder.path("")));
  ASSERT_EQ(found.layers.size(), 1u);
  EXPECT_EQ(found.layers[0].name, "a to b");
  EXPECT_EQ(found.layers[0].parameters, (std::vector<std::uint64_t>{249900, 100, 499900, 100}));
  EXPECT_EQ(found.buckets, (std::vector<std::size_t>{4}));
  const CaptureDelays& one = found.delays[0][1];
  EXPECT_EQ(one.forward, (std::vector<Nanos>{test::kForwardA + test::kForwardB}));
  EXPECT_EQ(one.backward, (std::vector<Nanos>{test::backward_of_last(7)}));
  EXPECT_EQ(found.left_out.begin()->first,
            "what each module's forward takes, as with layers by bucket: it is one delay");

  folder.write("rank1.jsonl", test::made_records(1));
  EXPECT_NE(test::error_of([&] { merge_capture(read_capture(folder.path(""))); }).find("same run"),
            std::string::npos);
  EXPECT_NE(refusal(R"("mode":"hooks")", R"("mode":"hooks","layers":"blocks")")
                .find(":1:1: layers 'blocks' are none of modules, buckets"),
            std::string::npos);
}

TEST_F(Capture, PlaysTheHostsWorkOnBuffersBesideTheirBroadcast) {
  constexpr Nanos kBroadcast = 1'500'000, kPlayed = 400'000;
  Captured found = merge_capture(made({.broadcast = kBroadcast}));
  for (const int rank : {0, 1}) {
    const CaptureDelays& one = found.delays[static_cast<std::size_t>(rank)][0];
    EXPECT_EQ(one.buffers, kBroadcast) << rank;  // without rank 1's wait for rank 0
    EXPECT_EQ(one.before, test::kBefore - (rank == 1 ? test::kRootLate : 0));
    EXPECT_EQ(one.forward[0], test::kForwardA - kBroadcast + (rank == 1 ? test::kLate : 0));
  }
  EXPECT_EQ(add_work_on_buffers(found, kPlayed), kBroadcast - kPlayed);
  EXPECT_EQ(found.delays[0][0].before, test::kBefore + kBroadcast - kPlayed);
  Captured again = merge_capture(made({.broadcast = kBroadcast}));
  EXPECT_EQ(add_work_on_buffers(again, 2 * kBroadcast), 0);
  EXPECT_EQ(again.delays[0][0].before, test::kBefore);

  // Played, the step is as long as it was; without the hosts' work it would be 4 % shorter.
  const std::string profile = folder.path("net.profile.yaml");
  const Outcome captured = merged_into(profile);
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_NE(captured.text.find("ms of a step in work on buffers"), std::string::npos)
      << captured.text;
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --within 0.01 '" + profile + "'");
  EXPECT_EQ(checked.status, 0) << checked.text;
}

// The network is what quick all-reduces show. Played, steps in which hosts held them up are as long
// as they were, and so are the others.
TEST_F(Capture, PlaysWhatHoldsUpTheLastAllReduces) {
  constexpr Nanos kHeldUp = 6'000'000;
  Captured found = merge_capture(made({.held_up = kHeldUp}));
  const CallCost cost = call_cost(found.reductions);
  EXPECT_NEAR(cost.per_byte, 8e-9, 0.02 * 8e-9);
  const auto tolerance = static_cast<double>(test::kReduce) * 0.02;
  EXPECT_NEAR(static_cast<double>(add_work_on_reductions(found, cost)), kHeldUp, tolerance);
  for (int rank : {0, 1})
    for (int i = 0; i < 4; ++i)  // steps 6 to 9 are the first block
      EXPECT_NEAR(
          static_cast<double>(
              found.delays[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)].after),
          test::kAfter + (test::is_held_up(6 + i) ? kHeldUp : 0), tolerance)
          << rank << " " << i;

  const std::string profile = folder.path("net.profile.yaml");
  const Outcome captured = merged_into(profile);
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_NE(captured.text.find("hosts held up its last all-reduces"), std::string::npos)
      << captured.text;
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check '" + profile + "' --json '" +
                                folder.path("check.json") + "'");
  ASSERT_EQ(checked.status, 0) << checked.text;
  std::ifstream file(folder.path("check.json"));
  const json rows = json::parse(file)["rows"];
  // Steps alone: a call's time in a result has the wait for other ranks in it, and bucket_ns has
  // not.
  ASSERT_EQ(rows.size(), 3u);  // median, tenth and ninetieth percentiles
  for (const json& row : rows) EXPECT_NEAR(row["error"].get<double>(), 0, 0.015) << row;
}

// Its all-reduces are delays, because a job of one rank plays none.
TEST_F(Capture, OfOneProcessPlaysWhatItsAllReducesTook) {
  Captured found = merge_capture(made());
  EXPECT_EQ(add_work_on_reductions(found, {}), test::kReduce - test::kBackwardA);

  const test::Folder alone;
  std::string text = test::made_records(0);
  text.replace(text.find(R"("world":2)"), 9, R"("world":1)");
  alone.write("rank0.jsonl", text);
  const std::string profile = folder.path("one.yaml");
  const Outcome captured = shell(GHOSTRANK_BINARY " profile capture --merge '" + alone.path("") +
                                 "' -o '" + profile + "'");
  ASSERT_EQ(captured.status, 0) << captured.text;
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --within 0.01 '" + profile + "'");
  EXPECT_EQ(checked.status, 0) << checked.text;
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

  std::vector<std::vector<CaptureReduction>> scattered;
  for (int i = 0; i < 9; ++i) {
    const double longer = 0.4 + 0.15 * i;
    const auto end = [&](double nanos) { return static_cast<Nanos>(nanos * longer); };
    scattered.push_back(
        {{0, 1'000'000, 0, end(8.5e6)}, {1, 100'000, 20'000'000, 20'000'000 + end(1.3e6)}});
  }
  const CallCost three = call_cost(scattered);
  EXPECT_FALSE(three.per_call_known);
  EXPECT_EQ(three.per_call, 0);
  EXPECT_GT(three.per_byte, 0.52 * 8e-9);  // a tenth of the spans took less than 0.52 of the middle
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
  LoadedJob job = test::load_text(
      "model: '" + folder.path("net.yaml") +
      "'\ncluster: {nodes: 5, gpus_per_node: 1, nics_per_node: 1}\nparallel: {framework: ddp}");
  // Both ranks are slow in the same steps; shifts would separate these, so no rank is shifted.
  EXPECT_EQ(plan_workload(job.spec).roles.size(), 2u);
  Model apart = *job.spec.model;
  for (std::size_t s = 0; s < 16; ++s) apart.recorded[1][s].optimizer += (s * 7) % 5 * 100'000'000;
  job.spec.model = std::make_shared<const Model>(std::move(apart));
  const Workload workload = plan_workload(job.spec);
  EXPECT_EQ(workload.roles.size(), 5u);  // 2 captured ranks x 3 shifts, less one
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
  const auto calls = [](const LoadedJob& loaded) {
    const Workload workload = plan_workload(loaded.spec);
    std::vector<std::uint64_t> counts;
    for (const Op& op : workload.roles[0].iterations.back().streams[1])
      if (op.kind == Op::Kind::collective) counts.push_back(op.count);
    return counts;
  };
  // A result's job plays them again.
  const auto reductions = [&](const std::string& parallel) {
    const LoadedJob loaded = test::load_text(job + "parallel: {framework: ddp" + parallel + "}");
    EXPECT_EQ(calls(test::load_text(loaded.config_json)), calls(loaded));
    return calls(loaded);
  };
  EXPECT_EQ(reductions(""), (std::vector<std::uint64_t>{500000, 250000}));
  EXPECT_EQ(reductions(", first_bucket_mb: 100"), (std::vector<std::uint64_t>{750000}));
}

// Rank 0 records the gradients of a bucket in two steps, rank 1 in one: each time 1 zero, and
// magnitudes from 2^-2 to 2^-1.75 and from 2^-1 to 2^-0.75.
TEST_F(Capture, CountsMagnitudesAndBlocksOfGradients) {
  const std::string looked =
      R"({"magnitudes":[[3,1,[[-8,60],[-4,39]]],[2,0,[[-8,1]]]],"blocks":[[3,[1,0,2]],[2,[0,2,5]]],)"
      R"("block":10})"
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
  EXPECT_NE(refused(R"({"magnitudes":[[3,101,[]]],"blocks":[],"block":10})")
                .find("rank0.jsonl:51:1: magnitudes of 101 elements of a parameter that has 100"),
            std::string::npos);
  EXPECT_NE(refused(R"({"magnitudes":[[3,0,[[9999,1]]]],"blocks":[],"block":10})")
                .find("k is no integer from -4400 to 4400"),
            std::string::npos);
  EXPECT_NE(refused(R"({"magnitudes":[],"blocks":[[0,[1,2]]],"block":10})")
                .find("blocks is no list of 3 fields"),
            std::string::npos);
  folder.write("rank0.jsonl", test::made_records(0));
  EXPECT_NE(test::error_of([&] {
              gradient_overlap(read_capture(folder.path("")));
            }).find("capture with --gradients"),
            std::string::npos);
}

// Each rank records the gradients of all four parameters; a layer's bias is ready first.
TEST_F(Capture, WritesAHistogramForEachTensorOfItsProfile) {
  const std::string looked =
      R"({"magnitudes":[[0,2,[]],[1,0,[[-8,1]]],[2,0,[[-8,60]]],[3,1,[[-8,60],[-4,39]]]],)"
      R"("blocks":[],"block":10})"
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

// A bias has 100 elements; a block of 1,000 begins in it only because it begins its bucket.
TEST_F(Capture, WritesOverlapsOfEachTensorOfItsProfile) {
  const std::string looked =
      R"({"magnitudes":[[2,0,[[0,1]]]],"blocks":[[3,[0,0,1]],[2,[300,100,99]]],"block":1000})"
      "\n"
      R"({"magnitudes":[[0,0,[[0,1]]]],"blocks":[[1,[1,0,0]],[0,[0,249,0]]],"block":1000})"
      "\n";
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", test::made_records(rank) + looked);
  const std::vector<CapturedRank> ranks = read_capture(folder.path(""));
  const Captured captured = merge_capture(ranks);
  const std::string overlaps = tensor_overlaps(ranks, captured.layers);
  EXPECT_EQ(overlaps,
            "# Blocks of 1000 elements of DDP's buckets.\nschema: ghostrank/overlap/1\n"
            "shares: [0.401333333, 0.465333333, 0.133333333]\ntensors:\n"
            "  \"a.0\": [0, 1, 0]\n  \"a.1\": [1, 0, 0]\n"
            "  \"b.0\": [0.601202405, 0.200400802, 0.198396794]\n  \"b.1\": [0, 0, 1]\n");

  const std::string model =
      folder.write("net.yaml", capture_profile(captured, {1e9, 0}, "net", {}));
  const std::string job =
      "model: '" + model + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncollectives: {allreduce: omnireduce}\nservers: {count: 1}\n" +
      "tensors: {block: 1000, overlap: '" + folder.write("run.tensors.yaml", overlaps) + "'}\n";
  const Workload workload = plan_workload(test::load_text(job).spec);
  ASSERT_EQ(workload.layouts.size(), 4u);  // none, two buckets, all gradients
  const TensorContent first(*test::load_text(job).spec.tensors, 7, 2, 500'000, workload.layouts[1]);
  EXPECT_TRUE(first.nonzero(0, 0) && first.nonzero(1, 0));
  EXPECT_NEAR(static_cast<double>(first.nonzero_elements(0)), (1 + 50 + 99) * 1000, 35'000);
  const TensorContent second(*test::load_text(job).spec.tensors, 7, 2, 250'000,
                             workload.layouts[2]);
  EXPECT_FALSE(second.nonzero(0, 0) || second.nonzero(1, 0));
  EXPECT_EQ(second.nonzero_elements(0) + second.nonzero_elements(1), 249'000u);
}

// With find_unused_parameters buckets are in the order of registration, and stay so.
TEST_F(Capture, HasLayersInForwardOrderWhereDdpFindsUnusedParameters) {
  const auto unused = [](std::string text) {
    text.replace(text.find(R"("host")"), 0, R"("find_unused":true,)");
    for (const auto& [from, to] :
         {std::pair{R"(,\[1,1000000,[0-9]+,[0-9]+\])", ""},
          {R"(\[0,"float32",500000,\[3,2\]\],.*\]\])", R"([0,"float32",750000,[0,1,2,3]]])"}})
      text = std::regex_replace(text, std::regex(from), to);
    return text;
  };
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", unused(test::made_records(rank)));
  const Captured found = merge_capture(read_capture(folder.path("")));
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(found.layers[0].name, "a");
  EXPECT_EQ(found.layers[0].parameters, (std::vector<std::uint64_t>{249900, 100}));
  EXPECT_EQ(found.layers[1].parameters, (std::vector<std::uint64_t>{499900, 100}));
  EXPECT_EQ(found.buckets, (std::vector<std::size_t>{4}));
  EXPECT_EQ(found.delays[0][1].forward, (std::vector<Nanos>{test::kForwardA, test::kForwardB}));
  EXPECT_EQ(found.delays[0][1].backward,
            (std::vector<Nanos>{test::kBackwardA, test::backward_of_last(7) - 500}));

  const std::string profile = folder.path("net.profile.yaml");
  ASSERT_EQ(merged_into(profile).status, 0);
  const Model model =
      *test::load_text("model: '" + profile + "'\nparallel: {framework: ddp}\n").spec.model;
  EXPECT_TRUE(model.find_unused);
}

TEST_F(Capture, RefusesWhatItCannotPlay) {
  EXPECT_NE(refusal(R"("backend":"gloo")", R"("backend":"mpi")").find("gloo's and NCCL's are"),
            std::string::npos);
  EXPECT_NE(refusal(R"("device":"cpu")", R"("device":"cuda")").find("launches and not of kernels"),
            std::string::npos);
  EXPECT_NE(refusal(R"("clock":)", R"("timer":"sand","clock":)").find("timer 'sand' is none of"),
            std::string::npos);
  EXPECT_NE(refusal(R"("forwards":1)", R"("forwards":4)").find("accumulation"), std::string::npos);
  EXPECT_NE(refusal(R"([1,"float32",250000,[1,0]])", R"([1,"float32",250000,[1,1]])")
                .find("a bucket has other elements than its parameters"),
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

TEST_F(Capture, RefusesTypesThatNoJobPlays) {
  const auto in_doubles = [](std::string text) {
    return std::regex_replace(text, std::regex("float32"), "float64");
  };
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", in_doubles(test::made_records(rank)));
  EXPECT_THAT(test::error_of([&] { merge_capture(read_capture(folder.path(""))); }),
              testing::HasSubstr("gradients of float64 are not played"));
}

// Two ranks of more may train a module; those of two groups are two runs.
TEST_F(Capture, IsOfOneGroupOfRanks) {
  const auto written = [&](int rank, const std::string& group) {
    std::string text = test::made_records(rank);
    text.replace(text.find(R"("host")"), 0, R"("group":)" + group + ",");
    folder.write("rank" + std::to_string(rank) + ".jsonl", text);
  };
  const auto error = [&] {
    return test::error_of([&] { merge_capture(read_capture(folder.path(""))); });
  };
  written(0, "[0,2]");
  written(1, "[0,2]");
  EXPECT_EQ(merge_capture(read_capture(folder.path(""))).ranks, 2);
  written(1, "[1,3]");
  EXPECT_THAT(error(), testing::HasSubstr("rank1.jsonl: its module has another process group"));
  written(1, "[0]");
  EXPECT_THAT(error(), testing::HasSubstr("group is no list of 2 fields"));
}

TEST_F(Capture, SaysThatNoStepEnded) {
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", test::made_header(rank, "here"));
  EXPECT_THAT(test::error_of([&] { merge_capture(read_capture(folder.path(""))); }),
              testing::HasSubstr("no optimizer of torch.optim stepped"));
}

TEST_F(Capture, CountsGradientsThatAreNotFinite) {
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl",
                 test::made_records(rank) + "{\"not_finite\":1}\n{\"not_finite\":0}\n");
  EXPECT_EQ(read_capture(folder.path("")).front().gradients.not_finite, 2u);
}

// Records of a run before would be taken for this one's.
TEST_F(Capture, RefusesAFolderThatHasRecords) {
  made();
  const Outcome refused = shell(GHOSTRANK_BINARY " profile capture --records '" + folder.path("") +
                                "' -o '" + folder.path("p.yaml") + "' -- false");
  EXPECT_EQ(refused.status, 2) << refused.text;
  EXPECT_THAT(refused.text, testing::HasSubstr("rank0.jsonl is of another run"));
}

TEST_F(Capture, KeepsStdoutForTheProfile) {
  const Outcome failed =
      shell("(" GHOSTRANK_BINARY " profile capture -o - -- echo printed) 2>/dev/null");
  EXPECT_THAT(failed.text, testing::Not(testing::HasSubstr("printed")));
}

TEST_F(Capture, IsHeldAgainstTheStepsThatItLeftOut) {
  made();
  const std::string profile = folder.path("net.profile.yaml");
  const Outcome captured = merged_into(profile);
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

TEST_F(Capture, SaysWhetherHooksMakeAStepLongerOrShorter) {
  const auto said = [&](long long without_hooks) {
    made({.without_hooks = without_hooks});
    return shell(GHOSTRANK_BINARY " profile capture --merge '" + folder.path("") + "' -o '" +
                 folder.path("net.profile.yaml") + "'")
        .text;
  };
  EXPECT_THAT(said(-1'000'000), testing::HasSubstr("hooks make a step longer by 2.71 %, standard"));
  EXPECT_THAT(said(1'000'000), testing::HasSubstr("hooks make a step shorter by 2.57 %, standard"));
}

// Two ranks on GPUs: the device's times, over NCCL, whose schedules the job plays.
TEST_F(Capture, OfGpusHasTheDevicesTimesAndNcclsSchedules) {
  for (const int rank : {0, 1}) {
    std::string text = test::made_records(rank);
    for (const auto& [from, to] :
         {std::pair{R"("gloo")", R"("nccl")"},
          {R"("device":"cpu")", R"("device":"cuda","device_name":"a GPU","timer":"cuda events")"}})
      text.replace(text.find(from), std::string(from).size(), to);
    folder.write("rank" + std::to_string(rank) + ".jsonl", text);
  }
  const std::string profile = folder.path("gpu.profile.yaml");
  const Outcome captured = shell(GHOSTRANK_BINARY " profile capture --merge '" + folder.path("") +
                                 "' -o '" + profile + "'");
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_NE(captured.text.find("times of the device (a GPU), by CUDA events"), std::string::npos)
      << captured.text;
  EXPECT_NE(captured.text.find("by nccl-2.28's schedule"), std::string::npos) << captured.text;
  const Outcome job = shell(GHOSTRANK_BINARY " profile check --print-job '" + profile + "'");
  EXPECT_NE(job.text.find("collectives: {library: nccl-2.28}"), std::string::npos) << job.text;
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --within 0.01 '" + profile + "'");
  EXPECT_EQ(checked.status, 0) << checked.text;
}

// As the hooks record rank 0 of a job whose other ranks do not exist.
TEST_F(Capture, OfOneRankWithAFakeGroupStandsForAll) {
  std::string text = test::made_records(0);
  for (const auto& [from, to] :
       {std::pair{R"("world":2)", R"("world":64)"}, {R"("gloo")", R"("fake")"}})
    text.replace(text.find(from), std::string(from).size(), to);
  folder.write("rank0.jsonl", text);
  const std::string profile = folder.path("one.profile.yaml");
  const Outcome captured = shell(GHOSTRANK_BINARY " profile capture --merge '" + folder.path("") +
                                 "' -o '" + profile + "'");
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_NE(captured.text.find("measured: one rank, whose all-reduces ended at once; assumed: the "
                               "others compute as it does; unknown: the network"),
            std::string::npos)
      << captured.text;
  const JobSpec job =
      test::load_text("model: '" + profile +
                      "'\ncluster: {nodes: 64, gpus_per_node: 1, nics_per_node: 1}\n"
                      "parallel: {framework: ddp}\n")
          .spec;
  EXPECT_EQ(job.model->capture->ranks, 64);
  EXPECT_EQ(job.model->capture->nic_rate_bps, 0);
  EXPECT_EQ(plan_workload(job).roles.size(), 16u);  // one rank's steps, shifted
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --json - '" + profile + "'");
  ASSERT_EQ(checked.status, 0) << checked.text;
  EXPECT_EQ(json::parse(checked.text)["ranks"], 64);
  folder.write("rank1.jsonl", test::made_records(1));
  EXPECT_NE(test::error_of([&] { merge_capture(read_capture(folder.path(""))); }).find("same run"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
