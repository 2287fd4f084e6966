// Errors that only planning or playing a job finds name the line of the key that they are about.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/traffic/traffic.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/layers_job.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

TEST(NamedLines, OfACallThatIsTooLargeAreTheModels) {
  std::string parameters = "[1000000000000";
  for (int i = 1; i < 80; ++i) parameters += ", 1000000000000";
  const LoadedJob job = test::load_text(test::text_of({.layers = {{parameters + "]"}}, .nodes = 2}),
                                        {"parallel.launch=flat"});
  const std::string error =
      test::error_of([&] { plan_traffic(job.spec, plan_workload(job.spec)); });
  EXPECT_NE(error.find("job.yaml:3:3: model: allreduce of group dp: a call has 80000000000000 "
                       "elements of 4 bytes, and at most 256 TiB can be played; make it smaller"),
            std::string::npos)
      << error;
}

TEST(NamedLines, OfJobsThatWouldPlayTooManyIterationsAreTheirs) {
  const auto entry = [](const std::string& name, const std::string& us, const std::string& node) {
    return "  - {name: " + name + ", nodes: " + node +
           ", file: {model: {kind: layers, layers: [{parameters: [10], forward_us: " + us +
           ", backward_us: 1}]}}}\n";
  };
  const LoadedJob job = test::load_text(
      "schema: ghostrank/job/1\njobs:\n" + entry("slow", "1e9", "0") + entry("quick", "1", "1") +
      "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\nfabric: {kind: virtual}\n");
  const std::string error = test::error_of([&] { testing::play(job); });
  EXPECT_NE(error.find("job.yaml:3:3: jobs: while the others are measured, job quick would play "
                       "more than 10,000,000 iterations"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace ghostrank
