// The laws of gradients that jobs give to tensors, and where these lie in what a plan reduces.
#include "profiles/planners/gradient_laws.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

// Tensors in order: a.0, a.1, b.0.
std::string job_with_laws(const std::string& tensors,
                          const std::string& parallel = "framework: ddp") {
  return test::text_of({.layers = {{"[3000, 21]"}, {"[5000]"}}, .nodes = 2, .parallel = parallel}) +
         "compression: {method: dgc}\n" + tensors;
}

GradientLaws laws_of(const std::string& tensors) {
  return test::load_text(job_with_laws(tensors)).spec.gradients;
}

std::string refused(const std::string& tensors, const std::string& parallel = "framework: ddp") {
  const std::string error = test::error_of(
      [&] { plan_workload(test::load_text(job_with_laws(tensors, parallel)).spec); });
  return error.empty() ? error : error.substr(error.find("job.yaml"));
}

using Law = GradientLaw::Kind;

TEST(GradientLawsOfJobs, AreThoseOfTheFirstRuleThatNamesATensor) {
  const GradientLaws laws = laws_of(
      "tensors:\n"
      "  scale: 0.5\n"
      "  drift: {scale: 0.9}\n"
      "  distribution:\n"
      "  - {tensors: 'a.1', law: gaussian}\n"
      "  - {tensors: 'a.*', law: gamma 0.5, scale: 2, drift: {shape: 1.1, until: 3}}\n"
      "  - {law: laplace}\n");
  ASSERT_EQ(laws.laws.size(), 3u);
  // As plans reduce them: the last tensor first.
  EXPECT_EQ(laws.parts, (std::vector<GradientLaws::Part>{{5000, 0}, {21, 1}, {3000, 2}}));
  EXPECT_EQ(laws.laws[0], (GradientLaw{Law::laplace, 1, 0.5, {}, {0.9, 1}}));
  EXPECT_EQ(laws.laws[1], (GradientLaw{Law::gaussian, 1, 0.5, {}, {0.9, 1}}));
  EXPECT_EQ(laws.laws[2], (GradientLaw{Law::gamma, 0.5, 2, {}, {1, 1.1, 3}}));
}

TEST(GradientLawsOfJobs, AreOneLawUnlessRulesDiffer) {
  for (const char* one :
       {"tensors: {distribution: gaussian}\n", "tensors: {distribution: [{law: gaussian}]}\n"}) {
    const GradientLaws laws = laws_of(one);
    EXPECT_EQ(laws.laws, std::vector{(GradientLaw{Law::gaussian})});
    EXPECT_TRUE(laws.parts.empty());
  }
}

TEST(GradientLawsOfJobs, AreMeasuredTensorByTensor) {
  const test::Folder folder;
  const std::string file = folder.write("by-name.csv",
                                        "tensor,magnitude,count\n"
                                        "b.0,3,1\na.0,1,5\na.0,2,5\na.1,7,2\n");
  const auto bins = [](const GradientLaws& laws, std::size_t part) {
    return laws.laws[laws.parts[part].law].bins;
  };
  using Bins = std::vector<GradientLaw::Bin>;
  const GradientLaws named = laws_of("tensors: {distribution: 'measured " + file + "'}\n");
  EXPECT_EQ(bins(named, 0), (Bins{{3, 1}}));
  EXPECT_EQ(bins(named, 1), (Bins{{7, 2}}));
  EXPECT_EQ(bins(named, 2), (Bins{{1, 5}, {2, 5}}));
  const GradientLaws numbered =
      laws_of("tensors: {distribution: 'measured " + file + " by number'}\n");
  EXPECT_EQ(bins(numbered, 0), (Bins{{7, 2}}));
  EXPECT_EQ(bins(numbered, 2), (Bins{{3, 1}}));
}

TEST(GradientLawsOfJobs, AreRefusedWhereTheyDoNotFitTheModel) {
  const test::Folder folder;
  const std::string file = folder.write("some.csv", "magnitude,count,tensor\n1,5,a.0\n1,5,b.0\n");
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(refused("tensors: {distribution: 'measured " + file + "'}\n"),
         "job.yaml:12:25: tensors.distribution: ");
  expect(refused("tensors: {distribution: 'measured " + file + "'}\n"),
         "has no histogram of the tensor 'a.1'; did you mean 'a.0'?");
  expect(refused("tensors: {distribution: 'measured " + file + " by number'}\n"),
         "has histograms of 2 tensors and 'small' has 3 of them");
  expect(refused("tensors: {distribution: [{tensors: 'c.*', law: gaussian}, {law: laplace}]}\n"),
         "job.yaml:12:26: this rule gives no tensor of 'small' a law: none is called 'c.*'");
  expect(refused("tensors: {distribution: [{law: laplace}, {tensors: 'a.*', law: gaussian}]}\n"),
         "that an earlier rule does not name; tensors are called as 'a.0'");
  expect(refused("tensors: {distribution: [{tensors: 'a.*', law: gaussian}]}\n"),
         "no rule of tensors.distribution names the tensor 'b.0'; end with one for all others");
  expect(refused("tensors: {distribution: [{tensors: b.0, law: gamma}, {law: laplace}]}\n"),
         "is 'gamma'; write laplace, gaussian, gamma SHAPE");
  expect(refused("tensors: {distribution: [{tensor: b.0, law: gaussian}]}\n"),
         "'tensor' has no place here");
  expect(refused("tensors: {distribution: {b.0: gaussian}}\n"), "a list of rules such as");
  // Horovod pads the tensors of its fused buffers; wfbp reduces each tensor alone, unpadded.
  const std::string rules =
      "tensors: {distribution: [{tensors: 'a.*', law: gaussian}, {law: laplace}]}\n";
  expect(refused(rules, "framework: horovod"), "fused buffers pad their tensors");
  EXPECT_EQ(refused(rules, "framework: wfbp"), "");
}

TEST(GradientLawsOfJobs, AreRefusedWhereTheyDriftTooFar) {
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  const std::string run = "run: {warmup: 1, iterations: 20}\n";
  expect(refused("tensors: {distribution: pareto 0.5, drift: {shape: 1.1}}\n" + run),
         "job.yaml:12:44: a law drifts too far: in iteration 20 its shape is 3.36");
  EXPECT_EQ(refused("tensors: {distribution: pareto 0.5, drift: {shape: 1.1, until: 7}}\n" + run),
            "");
  expect(refused("tensors: {drift: {scale: 0.01}}\n" + run), "magnitudes are from 1e-30 to 1e30");
  expect(refused("tensors: {drift: {shape: 1.1}}\n"), "no law of this job has a shape");
  expect(refused("tensors: {distribution: [{law: gaussian, drift: {shape: 2}}]}\n"),
         "gaussian has no shape that could drift");
  expect(refused("tensors: {drift: {scael: 0.9}}\n"), "unknown key 'scael' of a drift");
  expect(refused("tensors: {drift: {scale: 0}}\n"), "write a number from 0.01 to 100");
}

// Every bucket begins where the one before it ends. The first iteration has one bucket of 8021.
TEST(GradientLawsOfJobs, BeginABucketWhereTheOneBeforeEnds) {
  const LoadedJob loaded = test::load_text(
      job_with_laws("tensors: {distribution: [{tensors: 'a.*', law: gaussian}, {law: laplace}]}\n",
                    "framework: ddp, bucket_cap_mb: 0.01, first_bucket_mb: 0.01"));
  const Workload workload = plan_workload(loaded.spec);
  std::set<std::pair<std::uint64_t, std::uint64_t>> places;  // first, elements
  for (const CompressedTensor& tensor : workload.compressed)
    places.emplace(tensor.first, tensor.elements);
  EXPECT_EQ(places, (std::set<std::pair<std::uint64_t, std::uint64_t>>{
                        {0, 5000}, {0, 8021}, {5000, 3021}}));
}

}  // namespace
}  // namespace ghostrank
