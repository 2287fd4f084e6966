// The captured models that ghostrank has: how near to their runs they play.
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::Outcome;
using test::shell;

// Virtual time is deterministic: these are the figures of docs/traces.md. No name is left.
TEST(ShippedCaptures, AreAsNearTheirRunsAsIsSaid) {
  for (const auto& [name, within, tensors] :
       {std::tuple{"captured-gpt", 0.002, 28u}, std::tuple{"captured-resnet", 0.032, 62u}}) {
    const std::string profile =
        std::string(GHOSTRANK_SOURCE_DIR "/profiles/models/") + name + ".yaml";
    const Outcome checked = shell(GHOSTRANK_BINARY " profile check --json - '" + profile + "'");
    ASSERT_EQ(checked.status, 0) << checked.text;
    const json found = json::parse(checked.text);
    EXPECT_NEAR(found["rows"][0]["error"].get<double>(), 0, within) << name;
    EXPECT_EQ(found["held_out_steps"], 24) << name;
    EXPECT_EQ(found["buckets_by_rule"], true) << name;

    // The job of the same name plays the same steps, once DDP has its buckets.
    const LoadedJob job = load_job(std::string(name) + "-ddp", {});
    const Model& model = *job.spec.model;
    EXPECT_EQ(model.tensors(), tensors);
    for (std::size_t i = 0; i < model.layers.size(); ++i)
      EXPECT_EQ(model.layers[i].name, "layer" + std::to_string(i));
    EXPECT_NEAR(job.spec.cluster.nic.rate_bps, model.capture->nic_rate_bps, 1);
    const Workload workload = plan_workload(job.spec);
    EXPECT_EQ(workload.roles.size(), 2u);
    EXPECT_EQ(workload.cycle, 24u);
    const json played =
        json::parse(shell(GHOSTRANK_BINARY " run --json - -q " + std::string(name) + "-ddp").text);
    EXPECT_EQ(played["step_time"]["median"], found["rows"][0]["emulated"]) << name;
  }
}

// A capture of one GPU, rescaled and played on many GPUs; notes say which part is measured.
TEST(ShippedCaptures, OfOneGpuPlaysOnMany) {
  const std::string profile = GHOSTRANK_SOURCE_DIR "/profiles/models/captured-gpt2.yaml";
  const Outcome checked = shell(GHOSTRANK_BINARY " profile check --json - '" + profile + "'");
  ASSERT_EQ(checked.status, 0) << checked.text;
  const json found = json::parse(checked.text);
  EXPECT_NEAR(found["rows"][0]["error"].get<double>(), 0.0156, 0.0001);  // as docs/traces.md says
  EXPECT_EQ(found["buckets_by_rule"], true);

  const test::Folder folder;
  const std::string more = folder.path("more.yaml");
  const Outcome rescaled =
      shell(GHOSTRANK_BINARY " profile rescale '" + profile + "' --dp 16 -o '" + more + "'");
  ASSERT_EQ(rescaled.status, 0) << rescaled.text;
  EXPECT_NE(test::read_file(more).find("# measured: delays of 1 of 1024 ranks\n"),
            std::string::npos);
  const Outcome played = shell(GHOSTRANK_BINARY " run captured-gpt2-1024 -s model='" + more +
                               "' -s cluster.nodes=2 -s run.iterations=4 -q --json -");
  ASSERT_EQ(played.status, 0) << played.text;
  const json result = json::parse(played.text);
  EXPECT_GT(result["step_time"]["median"], found["rows"][0]["emulated"]);  // played with a network
  const std::string notes = result["notes"].dump();
  EXPECT_NE(notes.find("measured: delays of 1 of 16 ranks in 28 steps, and DDP's buckets, by a "
                       "capture (fake, torch 2.11.0+cu130)"),
            std::string::npos)
      << notes;
  EXPECT_NE(notes.find("assumed: the other 15 ranks compute as those"), std::string::npos) << notes;
}

}  // namespace
}  // namespace ghostrank
