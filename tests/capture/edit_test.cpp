// Profiles rescaled and without names.
#include "profiles/capture/edit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "profiles/capture/merge.h"
#include "profiles/capture/profile_text.h"
#include "profiles/capture/scales.h"
#include "profiles/load/program_file.h"
#include "profiles/median.h"
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

void expect_same_delays(const Model& one, const Model& other) {
  ASSERT_EQ(one.recorded.size(), other.recorded.size());
  ASSERT_GT(one.recorded.size(), 0u);
  for (std::size_t rank = 0; rank < one.recorded.size(); ++rank) {
    ASSERT_EQ(one.recorded[rank].size(), other.recorded[rank].size());
    ASSERT_GT(one.recorded[rank].size(), 0u);
    for (std::size_t s = 0; s < one.recorded[rank].size(); ++s) {
      const StepTimes &a = one.recorded[rank][s], &b = other.recorded[rank][s];
      EXPECT_EQ(a.optimizer, b.optimizer) << "rank " << rank << " step " << s;
      ASSERT_EQ(a.layers.size(), b.layers.size());
      for (std::size_t i = 0; i < a.layers.size(); ++i) {
        EXPECT_EQ(a.layers[i].forward, b.layers[i].forward) << "rank " << rank << " step " << s;
        EXPECT_EQ(a.layers[i].backward, b.layers[i].backward) << "rank " << rank << " step " << s;
      }
    }
  }
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
  expect_same_delays(after, before);
  EXPECT_EQ(comments.size(), 4u);
}

TEST(Rescale, SaysHowManyRanksACapturedModelMayHave) {
  const test::Folder folder;
  YamlValue profile = captured(folder);
  std::vector<std::string> comments;
  EXPECT_EQ(test::error_of([&] {
              rescale_model(profile, {70'000, {}}, comments);
            }),
            "--dp: a captured model has at most 65536 ranks, not 70000");
}

TEST(Rescale, ToAnotherNetworkKeepsNoTimesOfTheRun) {
  const test::Folder folder;
  YamlValue profile = captured(folder);
  ASSERT_FALSE(model_of(profile).capture->held_out.empty());
  std::vector<std::string> comments;
  rescale_model(profile, {0, 25e9}, comments);
  const CaptureFacts facts = *model_of(profile).capture;
  EXPECT_EQ(facts.ranks, 2);
  EXPECT_TRUE(facts.step.empty());
  EXPECT_TRUE(facts.held_out.empty());
}

Workload programs(const std::string& framework) {
  return plan_workload(test::load_text("model: gpt2\ndevice: h100-sxm\n"
                                       "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2}\n"
                                       "parallel: {framework: " +
                                       framework + "}")
                           .spec);
}

// Elements of all calls of role 0's last program, by function.
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

// Ranks that differ, as in imported traces: the file must be readable, with the roles that remain.
TEST(Rescale, ToFewerRanksLeavesOutWhatNoRankDoes) {
  Workload from = programs("ddp");
  ASSERT_EQ(from.roles.size(), 1u);
  for (int r = 1; r < from.ranks; ++r) {
    from.roles.push_back(from.roles[0]);
    from.roles.back().name = "rank " + std::to_string(r);
    from.role_of[WorldRank(r)] = static_cast<std::uint16_t>(r);
  }
  std::vector<std::string> comments;
  const Workload fewer = rescaled_program(from, {2, {}}, comments);
  EXPECT_EQ(fewer.roles.size(), 2u);
  const YamlValue text = parsed(program_profile(fewer, {}));
  const Workload again = read_program(*text.find("program"));
  EXPECT_EQ(again.ranks, 2);
  EXPECT_EQ(again.roles[1].name, "rank 1");
}

TEST(Rescale, RefusesWhatIsNotArithmetic) {
  std::vector<std::string> comments;
  const auto refusal = [&](const Workload& from) {
    return test::error_of([&] { rescaled_program(from, {8, {}}, comments); });
  };
  EXPECT_NE(refusal(programs("megatron, tp: 2")).find("change the shapes of kernels"),
            std::string::npos);
  Workload rooted = programs("ddp");
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::broadcast;
  op.count = 5;
  op.peer = 3;
  rooted.roles[0].iterations[0].streams[0].push_back(op);
  EXPECT_EQ(refusal(rooted), "");
  EXPECT_EQ(test::error_of([&] {
              rescaled_program(rooted, {2, {}}, comments);
            }),
            "broadcast with root 3: 2 ranks have no such rank; rescale to more, or capture such a "
            "run");
  YamlValue plain = parsed("kind: layers\nlayers: [{parameters: [3]}]");
  EXPECT_NE(test::error_of([&] {
              rescale_model(plain, {8, {}}, comments);
            }).find("no `capture`"),
            std::string::npos);
}

// The records of 2 ranks as a capture of `ranks`: layer b's backward takes `more` ns longer; the
// network has `megabits` Mb/s.
YamlValue capture_at(int ranks, Nanos more, double megabits = 1000) {
  const test::Folder folder;
  for (int rank : {0, 1})
    folder.write("rank" + std::to_string(rank) + ".jsonl", test::made_records(rank));
  Captured found = merge_capture(read_capture(folder.path("")));
  found.ranks = ranks;
  for (auto& rank : found.delays)
    for (CaptureDelays& step : rank) step.backward[1] += more;
  return parsed(capture_profile(found, {megabits * 1e6, 10}, "net", {}));
}

TEST(FitScale, FollowsWhatARankSendsWhereThePointsDiffer) {
  // 1 / ranks goes from 1/2 to 1/4 to 1/8: the second step is half of the first.
  const ScaleFit two = fit_scale({{2, 10, 0.1}, {4, 14, 0.1}}, 8);
  EXPECT_DOUBLE_EQ(two.value, 16);
  EXPECT_FALSE(two.constant);
  EXPECT_NEAR(two.error, 0.1 * std::sqrt(0.5 * 0.5 + 1.5 * 1.5), 1e-12);  // -0.5 * 10 + 1.5 * 14

  const ScaleFit noise = fit_scale({{2, 10, 3}, {4, 14, 3}}, 8);
  EXPECT_TRUE(noise.constant);
  EXPECT_DOUBLE_EQ(noise.value, 12);
  EXPECT_NEAR(noise.error, 3 / std::sqrt(2), 1e-12);

  // Three points that are on no such curve: their distance to it counts as error, too. The line
  // over 1 / ranks that fits them best has the slope -144 / 7 and misses them by 2 / 7, -6 / 7 and
  // 4 / 7.
  const ScaleFit bent = fit_scale({{2, 10, 0}, {4, 14, 0}, {8, 18, 0}}, 16);
  const ScaleFit straight = fit_scale({{2, 10, 0}, {4, 14, 0}, {8, 16, 0}}, 16);
  EXPECT_DOUBLE_EQ(straight.value, 17);
  EXPECT_NEAR(straight.error, 0, 1e-9);
  EXPECT_NEAR(bent.value, 14 + 144.0 / 7 * (7.0 / 24 - 1.0 / 16), 1e-9);
  EXPECT_NEAR(bent.residual, 6.0 / 7, 1e-9);
  EXPECT_NEAR(bent.error, std::sqrt(8.0 / 7 * (1.0 / 3 + 121.0 / 168)), 1e-9);
}

TEST(FitScales, StretchesThePhasesOfTheRecordedSteps) {
  std::vector<std::string> comments;
  const Model two = model_of(capture_at(2, 0)), four = model_of(capture_at(4, 4'000'000));
  const Model eight =
      model_of(fit_scales({capture_at(4, 4'000'000, 900), capture_at(2, 0)}, 8, comments));
  EXPECT_EQ(eight.capture->ranks, 8);
  EXPECT_TRUE(eight.capture->held_out.empty());
  // From 4 to 8 ranks, the backward of both layers grows by half as much as from 2 to 4.
  const auto backward = [](const Model& model) {
    std::vector<double> times;
    for (const StepTimes& step : model.recorded[0])
      times.push_back(static_cast<double>(step.layers[0].backward + step.layers[1].backward) *
                      1e-9);
    return median(times);
  };
  EXPECT_NEAR(backward(four), backward(two) + 4, 1e-6);
  EXPECT_NEAR(backward(eight), backward(two) + 6, 1e-3);
  // Layers keep their shares of the backward; times that do not depend on the ranks stay.
  const LayerTime &before = four.recorded[1][3].layers[0], &after = eight.recorded[1][3].layers[0];
  EXPECT_NEAR(static_cast<double>(after.backward) / static_cast<double>(before.backward),
              backward(eight) / backward(four), 2e-2);
  EXPECT_EQ(after.forward, before.forward);
  // Seconds per megabit: 1/1000 with 2 ranks and 1/900 with 4, so 1.1667/1000 with 8.
  EXPECT_NEAR(eight.capture->nic_rate_bps, 1000e6 / (1 + 1.5 / 9), 1e4);
  EXPECT_EQ(eight.capture->nic_latency, 10 * kPicosPerMicro);
  const std::string all = testing::PrintToString(comments);
  EXPECT_NE(all.find("fitted: 1 of 6 phases of a step change with the ranks"), std::string::npos)
      << all;
  EXPECT_NE(all.find("of 8, standard error"), std::string::npos) << all;
  EXPECT_NE(all.find("two captures cannot show that it is another"), std::string::npos);
}

TEST(FitScales, RefusesCapturesThatContradictEachOther) {
  std::vector<std::string> comments;
  const auto refusal = [&](YamlValue one, YamlValue other) {
    return test::error_of([&] { fit_scales({std::move(one), std::move(other)}, 8, comments); });
  };
  EXPECT_NE(refusal(capture_at(4, 0), capture_at(4, 0)).find("two captures are of 4 ranks"),
            std::string::npos);
  YamlValue other = capture_at(4, 0);
  other.find("buckets")->children[0].text = "1";
  other.find("buckets")->children[1].text = "3";
  EXPECT_NE(refusal(capture_at(2, 0), std::move(other)).find("other buckets than the capture"),
            std::string::npos);
  other = capture_at(4, 0);
  put_scalar(*other.find("capture"), "backend", "nccl");
  EXPECT_NE(refusal(capture_at(2, 0), std::move(other)).find("other process groups"),
            std::string::npos);
  EXPECT_NE(refusal(capture_at(2, 0), capture_at(4, 0, 300)).find("more than twice as slow"),
            std::string::npos);
  EXPECT_NE(refusal(capture_at(2, 0), capture_at(1, 0, 0)).find("passed no network"),
            std::string::npos);
  EXPECT_NE(refusal(capture_at(2, 60'000'000), capture_at(4, 0)).find("the backward would take -"),
            std::string::npos);
  YamlValue made_up = capture_at(2, 0);
  rescale_model(made_up, {4, {}}, comments);
  EXPECT_NE(refusal(capture_at(2, 0), std::move(made_up)).find("a profile that was rescaled"),
            std::string::npos);
  YamlValue plain = parsed("kind: layers\nlayers: [{parameters: [3]}]");
  EXPECT_NE(refusal(plain, capture_at(2, 0)).find("no recorded steps"), std::string::npos);
}

TEST(Anonymise, LeavesNoNameAndChangesNoDelay) {
  const test::Folder folder;
  YamlValue profile = captured(folder);
  const Model before = model_of(profile);
  anonymise_model(profile);
  const Model after = model_of(profile);
  EXPECT_EQ(after.name, "model");
  ASSERT_EQ(after.layers.size(), before.layers.size());
  for (std::size_t i = 0; i < after.layers.size(); ++i) {
    EXPECT_EQ(after.layers[i].name, "layer" + std::to_string(i));
    EXPECT_EQ(after.layers[i].forward, before.layers[i].forward);
    EXPECT_EQ(after.layers[i].backward, before.layers[i].backward);
  }
  expect_same_delays(after, before);

  Workload program = programs("ddp");
  anonymise_program(program);
  const std::string text = program_profile(program, {});
  EXPECT_EQ(text.find("forward"), std::string::npos);
  EXPECT_EQ(text.find("bucket"), std::string::npos);
  EXPECT_EQ(counts(program), counts(programs("ddp")));
}

}  // namespace
}  // namespace ghostrank
