// What makes a run unfaithful, what it is valid for, and what would help.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/segment.h"
#include "profiles/job/job.h"
#include "profiles/model/model.h"

namespace ghostrank {
namespace {

// As a run of several processes.
Fidelity judged(const SegmentSummary& sum, const JobSpec& spec, double dilation) {
  return judge(sum, spec, dilation, is_network(spec.fabric.kind));
}

TEST(Judge, EachThresholdAloneMakesARunUnfaithful) {
  JobSpec spec;
  spec.fabric.kind = FabricKind::ofi;
  SegmentReport good;
  good.end.at = kPicosPerSecond;
  good.median_seconds = 0.1;
  EXPECT_TRUE(judged(good, spec, 10).faithful);
  const auto reason = [&](auto spoil) {
    SegmentReport bad = good;
    spoil(bad);
    const Fidelity f = judged(bad, spec, 10);
    EXPECT_FALSE(f.faithful);
    return f.reason;
  };
  EXPECT_NE(reason([](auto& s) { s.median_error = 0.02; }).find("critical path 2.00 %"),
            std::string::npos);
  EXPECT_NE(
      reason([](auto& s) { s.wall_behind = kPicosPerSecond / 500; }).find("critical path 2.00 %"),
      std::string::npos);
  EXPECT_NE(reason([](auto& s) { s.held_up = s.queued = 0.02; }).find("waiting for a core"),
            std::string::npos);
  EXPECT_NE(reason([](auto& s) { s.loop_busy = 0.9; }).find("loop busy"), std::string::npos);
  EXPECT_NE(reason([](auto& s) { s.paced = 1000, s.pace_error = 20; }).find("paced rate"),
            std::string::npos);
}

// A host that is held up at work may delay messages unseen; a wait that ends late shows.
TEST(Judge, AddsWhatWasTakenFromAHostToTheLatenessThatItSaw) {
  JobSpec spec;
  spec.fabric.kind = FabricKind::ofi;
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  run.median_error = 0.006;
  run.held_up = run.taken = 0.006;
  EXPECT_FALSE(judged(run, spec, 10).faithful);
  run.taken = 0.001;
  EXPECT_TRUE(judged(run, spec, 10).faithful);
}

// In memory all lateness shows in the result's own times, so being held up alone spoils nothing.
TEST(Judge, DoesNotHoldWaitingAgainstAResultThatIsExact) {
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  run.held_up = run.taken = run.queued = 0.018;
  const Fidelity f = judged(run, JobSpec(), 10);
  EXPECT_TRUE(f.faithful) << f.reason;
  EXPECT_EQ(f.run_queue_wait, 0.018);
}

TEST(Judge, StepTimesOfAssumedComputeAreNotValid) {
  SegmentReport good;
  good.end.at = kPicosPerSecond;
  const auto model = std::make_shared<Model>();
  model->transformer.emplace();
  JobSpec spec;
  spec.model = model;
  spec.device.step_time_error = 0.05;
  const auto judged_on = [&](const SegmentReport& sum, FabricKind kind) {
    spec.fabric.kind = kind;
    return judged(sum, spec, 10);
  };
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time})
    for (const SegmentReport& sum : {good, SegmentReport{}}) {
      spec.device.multiprocessors = 0;
      const Fidelity assumed = judged_on(sum, kind);
      EXPECT_TRUE(assumed.faithful);
      EXPECT_TRUE(assumed.assumed_compute);
      EXPECT_EQ(assumed.model_error, 0);
      EXPECT_EQ(assumed.valid_for, (std::vector<std::string>{"bytes", "order"}));
      spec.device.multiprocessors = 108;
      spec.device.calibration = Calibration::fitted;
      const Fidelity fitted = judged_on(sum, kind);
      EXPECT_FALSE(fitted.assumed_compute);
      EXPECT_EQ(fitted.model_error, 0.05);
      EXPECT_EQ(fitted.valid_for.back(), "step_time");
      spec.device.calibration = Calibration::assumed;
    }
}

TEST(Judge, OtherFrameworksHaveAnErrorOfTheirOwn) {
  const auto model = std::make_shared<Model>();
  model->transformer.emplace();
  JobSpec spec;
  spec.model = model;
  spec.fabric.kind = FabricKind::virtual_time;
  spec.device.multiprocessors = 108;
  spec.device.calibration = Calibration::fitted;
  spec.device.step_time_error = 0.05;
  spec.device.step_time_error_others = 0.12;
  spec.parallel.framework = Framework::megatron;
  EXPECT_EQ(judged(SegmentReport{}, spec, 1).model_error, 0.05);
  spec.parallel.framework = Framework::fsdp;
  EXPECT_EQ(judged(SegmentReport{}, spec, 1).model_error, 0.12);
  spec.device.step_time_error_others = 0;
  EXPECT_EQ(judged(SegmentReport{}, spec, 1).model_error, 0.05);
}

TEST(Judge, ARunInWhichNoTimePassedIsNotLate) {
  SegmentReport nothing;
  nothing.loop_busy = 1;
  nothing.held_up = 0.5;
  EXPECT_TRUE(judged(nothing, JobSpec(), 1).faithful);
}

TEST(Judge, AdvisesWhatHelpsAgainstTheReason) {
  JobSpec memory, network;
  network.fabric.kind = FabricKind::ofi;
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  const auto advice = [&](const JobSpec& spec) {
    return remedy_for(judged(run, spec, 10).reason, "scale.dilation");
  };
  const std::string accept = ", or accept it with --allow-unfaithful";
  run.held_up = run.queued = 0.02;
  EXPECT_EQ(advice(network), "stop other programs on this machine" + accept);
  run.throttled = 0.02;
  EXPECT_EQ(advice(network), "give its control group more CPU time (cpu.max)" + accept);
  run.throttled = run.queued = 0;
  EXPECT_EQ(advice(network), "find what stops this process or this machine" + accept);
  run.queued = 0.02;
  run.loop_busy = 0.9;
  EXPECT_EQ(advice(network),
            "stop other programs on this machine, or raise scale.dilation" + accept);
  run.held_up = run.queued = 0;
  EXPECT_EQ(advice(network), "raise scale.dilation" + accept);
  run.loop_busy = 0;
  run.median_error = 0.05;
  EXPECT_EQ(advice(memory), "raise scale.dilation" + accept);
  run.held_up = run.queued = 0.1;  // the cause of the lateness
  EXPECT_EQ(advice(memory),
            "stop other programs on this machine, or raise scale.dilation" + accept);
}

TEST(Judge, CongestionIsValidOnlyUndilatedOnARealFabric) {
  JobSpec spec;
  SegmentReport good;
  good.end.at = kPicosPerSecond;
  const auto valid = [&](FabricKind kind, double dilation) {
    spec.fabric.kind = kind;
    const auto list = judged(good, spec, dilation).valid_for;
    return std::find(list.begin(), list.end(), "congestion") != list.end();
  };
  EXPECT_TRUE(valid(FabricKind::ofi, 1));
  EXPECT_FALSE(valid(FabricKind::ofi, 2));
  EXPECT_FALSE(valid(FabricKind::memory, 1));
  EXPECT_FALSE(valid(FabricKind::virtual_time, 1));
}

TEST(Judge, WhereNothingCrossesTheFabricARunIsJudgedAsInMemory) {
  JobSpec spec;
  spec.fabric.kind = FabricKind::ofi;
  SegmentReport run;
  run.end.at = kPicosPerSecond;
  run.held_up = run.taken = run.queued = 0.018;
  EXPECT_FALSE(judge(run, spec, 1, true).faithful);
  const Fidelity f = judge(run, spec, 1, false);
  EXPECT_TRUE(f.faithful);
  EXPECT_EQ(std::find(f.valid_for.begin(), f.valid_for.end(), "congestion"), f.valid_for.end());
}

}  // namespace
}  // namespace ghostrank
