// Profiles rescaled and without names.
#include "profiles/capture/edit.h"

#include <gtest/gtest.h>

#include "profiles/capture/merge.h"
#include "profiles/capture/profile_text.h"
#include "profiles/load/program_file.h"
#include "profiles/planners/plan.h"
#include "tests/capture/records.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

YamlValue parsed(const std::string& text) {
  return parse_yaml(text, std::make_shared<Source>(Source{"profile", "profile", true}));
}

YamlValue captured(const test::Folder& folder) {
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", test::made_records(rank));
  return parsed(
      capture_profile(merge_capture(read_capture(folder.path(""))), {1e9, 0}, "secret", {}));
}

Model model_of(YamlValue description) {
  std::erase_if(description.children, [](const YamlValue& child) { return child.key == "schema"; });
  return make_model(description);
}

TEST(Rescale, KeepsGradientsAndDelaysOfACapture) {
  const test::Folder folder;
  YamlValue profile = captured(folder);
  const Model before = model_of(profile);
  std::vector<std::string> comments;
  rescale_model(profile, {64, 25e9}, comments);
  const Model after = model_of(profile);
  EXPECT_EQ(after.capture->ranks, 64);
  EXPECT_EQ(after.capture->nic_rate_bps, 25e9);
  EXPECT_TRUE(after.capture->held_out.empty());  // they are of another run
  EXPECT_EQ(after.parameters(), before.parameters());
  EXPECT_EQ(after.recorded.size(), before.recorded.size());
  EXPECT_EQ(comments.size(), 4u);
}

Workload programs(const std::string& framework) {
  return plan_workload(test::load_text("model: gpt2\ndevice: h100-sxm\n"
                                       "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2}\n"
                                       "parallel: {framework: " +
                                       framework + "}")
                           .spec);
}

// Bytes of all calls of rank 0's last program, by function.
std::map<Func, std::uint64_t> counts(const Workload& workload) {
  std::map<Func, std::uint64_t> out;
  for (const OpList& stream : workload.roles[0].iterations.back().streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective) out[op.func] += op.count;
  return out;
}

TEST(Rescale, OfDdpKeepsBucketsAndOfFsdpDividesShards) {
  std::vector<std::string> comments;
  const Workload ddp = programs("ddp");
  const Workload more = rescaled_program(ddp, {16, {}}, comments);
  EXPECT_EQ(more.ranks, 16);
  EXPECT_EQ(more.groups[0].members.size(), 16u);
  EXPECT_EQ(counts(more), counts(ddp));
  EXPECT_EQ(more.samples_per_iteration, 4 * ddp.samples_per_iteration);

  const Workload fsdp = programs("fsdp");
  const auto one = counts(fsdp), two = counts(rescaled_program(fsdp, {8, {}}, comments));
  EXPECT_NEAR(static_cast<double>(two.at(Func::all_gather)),
              static_cast<double>(one.at(Func::all_gather)) / 2, 200);
  EXPECT_NEAR(static_cast<double>(two.at(Func::reduce_scatter)),
              static_cast<double>(one.at(Func::reduce_scatter)) / 2, 200);
}

TEST(Rescale, RefusesWhatIsNotArithmetic) {
  std::vector<std::string> comments;
  const auto refusal = [&](const Workload& from) {
    return test::error_of([&] { rescaled_program(from, {8, {}}, comments); });
  };
  EXPECT_NE(refusal(programs("megatron, tp: 2")).find("change the shapes of kernels"),
            std::string::npos);
  YamlValue plain = parsed("kind: layers\nlayers: [{parameters: [3]}]");
  EXPECT_NE(test::error_of([&] {
              rescale_model(plain, {8, {}}, comments);
            }).find("no `capture`"),
            std::string::npos);
}

TEST(Anonymise, LeavesNoNameAndChangesNoDelay) {
  const test::Folder folder;
  YamlValue profile = captured(folder);
  const Model before = model_of(profile);
  anonymise_model(profile);
  const Model after = model_of(profile);
  EXPECT_EQ(after.name, "model");
  for (std::size_t i = 0; i < after.layers.size(); ++i) {
    EXPECT_EQ(after.layers[i].name, "layer" + std::to_string(i));
    EXPECT_EQ(after.layers[i].forward, before.layers[i].forward);
  }

  Workload program = programs("ddp");
  anonymise_program(program);
  const std::string text = program_profile(program, {});
  EXPECT_EQ(text.find("forward"), std::string::npos);
  EXPECT_EQ(text.find("bucket"), std::string::npos);
  EXPECT_EQ(counts(program), counts(programs("ddp")));
}

}  // namespace
}  // namespace ghostrank
