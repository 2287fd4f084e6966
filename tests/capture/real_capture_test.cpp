// Captures of a script that PyTorch really trains, where it is installed.
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/capture/records.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::Outcome;
using test::shell;

class RealCapture : public testing::Test {
 protected:
  test::Folder folder;
};

// A Python that has PyTorch; empty: none.
const std::string& python_with_torch() {
  static const std::string found = [] {
    for (const char* one : {"python3", "/usr/bin/python3"})
      if (shell(std::string(one) + " -c 'import torch.distributed'").status == 0) return one;
    return "";
  }();
  return found;
}

TEST_F(RealCapture, OfOneRankNeedsAPyTorchWithAFakeGroup) {
  const std::string& python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "there is no PyTorch (python3-torch)";
  const std::string profile = folder.path("p.yaml");
  const Outcome captured =
      shell(GHOSTRANK_BINARY " profile capture --ranks 8 -o '" + profile + "' -- " + python +
            " '" GHOSTRANK_SOURCE_DIR "/tests/capture/train.py' '" + folder.path("out.json") + "'");
  if (captured.status == 0) {  // PyTorch 2
    EXPECT_NE(test::read_file(profile), "");
    return;
  }
  EXPECT_EQ(captured.status, 3) << captured.text;
  EXPECT_NE(captured.text.find("has no fake process group, which --ranks needs; use PyTorch 2"),
            std::string::npos)
      << captured.text;
}

// What each script does is recorded as it is, or refused by name.
TEST_F(RealCapture, OfScriptsThatDoMore) {
  const std::string& python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "there is no PyTorch (python3-torch)";
  const auto capture = [&](const std::string& what) {
    return shell(GHOSTRANK_BINARY " profile capture --block 3 -o '" + folder.path(what + ".yaml") +
                 "' --records '" + folder.path(what) +
                 "' -- '" GHOSTRANK_SOURCE_DIR "/tests/capture/two_ranks.sh' " + python +
                 " '" GHOSTRANK_SOURCE_DIR "/tests/capture/others.py' " + what);
  };
  const Outcome more = capture("more");
  ASSERT_EQ(more.status, 0) << more.text;
  const CapturedRank rank = read_captured_rank(folder.path("more/rank0.jsonl"));
  EXPECT_EQ(rank.steps.size(), 23u);
  for (const CapturedStep& step : rank.steps) {
    if (step.mode != CapturedStep::Mode::on) continue;
    EXPECT_EQ(step.modules.size(), 4u);  // each module of DDP's once
    for (const CapturedMoment& one : step.modules) EXPECT_LE(one.at, step.forward_end);
    ASSERT_FALSE(step.gradients.empty());
    EXPECT_LE(step.backward_begin, step.gradients.front().at);
  }
  for (const auto& [what, why] :
       {std::pair<std::string, const char*>{"sparse", "gradients are sparse"},
        {"closure", "in a closure"},
        {"accumulate", "accumulates the gradients of 2 forwards"},
        {"join", "divide_by_initial_world_size=False"}}) {
    const Outcome captured = capture(what);
    EXPECT_EQ(captured.status, 2) << what << ": " << captured.text;
    EXPECT_NE(captured.text.find(why), std::string::npos) << captured.text;
  }
}

// The script as it is, and with the hooks: the same training, and a profile of it.
TEST_F(RealCapture, OfARealRunChangesNothingAndCanBePlayed) {
  const std::string& python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "there is no PyTorch (python3-torch)";
  const std::string script = "'" GHOSTRANK_SOURCE_DIR "/tests/capture/two_ranks.sh' " + python +
                             " '" GHOSTRANK_SOURCE_DIR "/tests/capture/train.py' ";
  const Outcome alone = shell(script + "'" + folder.path("alone.json") + "'");
  ASSERT_EQ(alone.status, 0) << alone.text;
  const std::string profile = folder.path("run.profile.yaml");
  const Outcome captured =
      shell(GHOSTRANK_BINARY " profile capture --block 4 -o '" + profile + "' --records '" +
            folder.path("fine") + "' --gradients '" + folder.path("run") + "' -- " + script + "'" +
            folder.path("captured.json") + "'");
  ASSERT_EQ(captured.status, 0) << captured.text;
  EXPECT_EQ(test::read_file(folder.path("captured.json")),
            test::read_file(folder.path("alone.json")));
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --json - '" + profile + "'");
  ASSERT_EQ(checked.status, 0) << checked.text;
  const json found = json::parse(checked.text);
  EXPECT_EQ(found["ranks"], 2);
  EXPECT_EQ(found["buckets_by_rule"], true);
  EXPECT_GE(found["held_out_steps"].get<int>(), 6);

  // The hooks record only the last gradient of each layer.
  const std::size_t layers =
      test::load_text("model: '" + profile + "'\nparallel: {framework: ddp}\n")
          .spec.model->layers.size();
  for (const CapturedStep& step : read_captured_rank(folder.path("fine/rank0.jsonl")).steps)
    EXPECT_EQ(step.gradients.size(), step.mode == CapturedStep::Mode::on ? layers : 0);

  // With buckets as layers the hooks record only the buckets' launches: a layer for each bucket.
  const Outcome coarse =
      shell(GHOSTRANK_BINARY " profile capture --layers buckets --block 4 -o '" +
            folder.path("coarse.yaml") + "' --records '" + folder.path("coarse") + "' -- " +
            script + "'" + folder.path("coarse.json") + "'");
  ASSERT_EQ(coarse.status, 0) << coarse.text;
  EXPECT_EQ(test::read_file(folder.path("coarse.json")),
            test::read_file(folder.path("alone.json")));
  const JobSpec of_buckets =
      test::load_text("model: '" + folder.path("coarse.yaml") + "'\nparallel: {framework: ddp}\n")
          .spec;
  EXPECT_EQ(of_buckets.model->layers.size(), of_buckets.model->buckets.size());
  for (const CapturedStep& step : read_captured_rank(folder.path("coarse/rank0.jsonl")).steps)
    EXPECT_EQ(step.modules.size() + step.gradients.size(), 0u);

  // The files of gradients, in a job. In some steps a ReLU leaves zero gradients in whole rows of
  // weights and in the biases of dead units.
  const LoadedJob job = test::load_text(
      "model: '" + profile + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncollectives: {allreduce: omnireduce}\nservers: {count: 1}\n" +
      "tensors: {overlap: '" + folder.path("run.overlap.yaml") + "'}\n");
  EXPECT_GT(job.spec.tensors->density, 0.5);
  EXPECT_LE(job.spec.tensors->density, 1);
  EXPECT_EQ(job.spec.tensor_rules.size(), 0u);
  const LoadedJob overlaps_by_tensor = test::load_text(
      "model: '" + profile + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncollectives: {allreduce: omnireduce}\nservers: {count: 1}\n" +
      "tensors: {overlap: '" + folder.path("run.tensors.yaml") + "'}\n");
  EXPECT_EQ(*overlaps_by_tensor.spec.tensors->measured, *job.spec.tensors->measured);
  EXPECT_GE(overlaps_by_tensor.spec.tensor_rules.size(), 4u);
  EXPECT_GT(plan_workload(overlaps_by_tensor.spec).layouts.size(), 2u);
  const LoadedJob compressed = test::load_text(
      "model: '" + profile + "'\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n" +
      "parallel: {framework: ddp}\ncompression: {method: dgc, ratio: 0.01}\n" +
      "tensors: {distribution: 'measured " + folder.path("run.magnitudes.csv") + "'}\n");
  // Each of the 2 ranks recorded every parameter equally often.
  double elements = 0, expected = 0;
  for (const GradientLaw::Bin& bin : compressed.spec.gradients.laws.front().bins)
    elements += bin.count;
  for (const double one : {64 * 700, 700, 700, 700, 700 * 700, 700, 7000, 10}) expected += one;
  EXPECT_GT(elements, 0);
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
    EXPECT_GT(looked, 0);
    EXPECT_EQ(std::fmod(looked, 2 * static_cast<double>(part.elements)), 0);
  }
}

}  // namespace
}  // namespace ghostrank
