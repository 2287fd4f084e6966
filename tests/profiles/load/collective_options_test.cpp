// Keys of `collectives` that have their own syntax, from the file to the specification.
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/load/load.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using test::kHead;
using test::load_error;

CollectiveSpec collectives(const std::string& text,
                           const std::vector<std::string>& overrides = {}) {
  const test::Folder folder;
  return load_job(folder.write("job.yaml", kHead + "collectives: " + text + "\n"), overrides)
      .spec.collectives;
}

std::string refused(const std::string& text) {
  return load_error(kHead + "collectives: " + text + "\n");
}

TEST(CollectiveGroups, NameAlgorithmsForOneKindOfGroup) {
  const CollectiveSpec spec =
      collectives("{allreduce: rabenseifner, groups: {dp: {allreduce: ring, all_gather: bruck}}}");
  EXPECT_EQ(spec.algorithm(Func::all_reduce, "dp"), "ring");
  EXPECT_EQ(spec.algorithm(Func::all_gather, "dp"), "bruck");
  EXPECT_EQ(spec.algorithm(Func::broadcast, "dp"), "auto");
  EXPECT_EQ(spec.algorithm(Func::all_reduce, "tp"), "rabenseifner");
}

TEST(CollectiveGroups, RefuseWhatIsNoOperationOrAlgorithm) {
  EXPECT_EQ(refused("{groups: {dp: {allgather: ring}}}"),
            "job.yaml:4:29: 'allgather' is no operation; did you mean all_gather?");
  EXPECT_EQ(refused("{groups: {dp: {allreduce: rnig}}}"),
            "job.yaml:4:40: collectives.groups.dp.allreduce is 'rnig'; did you mean ring?");
  EXPECT_EQ(refused("{groups: {dp: ring}}"),
            "job.yaml:4:28: group 'dp' is 'ring'; write a mapping, as in {dp: {allreduce: ring}}");
  EXPECT_EQ(refused("{groups: [dp]}"),
            "job.yaml:4:23: collectives.groups is a list; write a mapping, as in {dp: {allreduce: "
            "ring}}");
}

TEST(CollectiveEnvironment, IsPartOfTheJob) {
  const CollectiveSpec spec = collectives(
      "{library: nccl-2.28, environment: {NCCL_ALGO: Ring, NCCL_MAX_NCHANNELS: 4}}",
      {"collectives.environment.NCCL_MAX_NCHANNELS=8", "collectives.environment.NCCL_PROTO=^LL"});
  EXPECT_EQ(
      spec.environment,
      (Environment{{"NCCL_ALGO", "Ring"}, {"NCCL_MAX_NCHANNELS", "8"}, {"NCCL_PROTO", "^LL"}}));
}

TEST(CollectiveEnvironment, OfTheProcessIsNotTaken) {
  const test::Variable set("NCCL_ALGO", "Tree");
  EXPECT_TRUE(collectives("{library: nccl-2.28}").environment.empty());
}

TEST(CollectiveEnvironment, RefusesWhatHasNoEffectOrNoSense) {
  EXPECT_EQ(
      refused("{library: nccl-2.28, environment: {NCCL_NTHREADS: 100}}"),
      "job.yaml:4:64: NCCL_NTHREADS=100: takes a whole number from 64 to 512, a multiple of 32");
  EXPECT_NE(
      refused("{library: nccl-2.28, environment: {NCCL_ALG: Ring}}").find("NCCL_ALG=Ring: not a"),
      std::string::npos);
  EXPECT_NE(
      refused("{library: gloo, environment: {NCCL_ALGO: Ring}}").find("means nothing to library"),
      std::string::npos);
  EXPECT_NE(refused("{library: nccl-2.28, allreduce: tree, environment: {NCCL_ALGO: Ring}}")
                .find("has no effect beside an algorithm for collectives.allreduce"),
            std::string::npos);
  EXPECT_NE(refused("{library: nccl-2.28, protocol: LL, environment: {NCCL_PROTO: Simple}}")
                .find("has no effect beside collectives.protocol"),
            std::string::npos);
  EXPECT_NE(refused("{library: nccl-2.28, environment: {NCCL_MIN_CTAS: 8, NCCL_MAX_CTAS: 4}}")
                .find("the least number of channels, 8, is above the largest, 4"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
