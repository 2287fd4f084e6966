// The jobs that a switch refuses, and its reasons.
#include "switch/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

using testing::HasSubstr;

TEST(SwitchPlan, RefusesWhatDoesNotFit) {
  const SwitchPlan plan = plan_of({job_of(2, 64)}, 4);
  const auto refused = [&](auto change) {
    JobPlan job = job_of(2, 64);
    job.name = "b";
    job.first_slot = 100;
    change(job);
    return reason_to_refuse(plan, job);
  };
  EXPECT_EQ(refused([](JobPlan&) {}), "");
  EXPECT_THAT(refused([](JobPlan& j) { j.name = "a"; }), HasSubstr("there is a job 'a' already"));
  EXPECT_THAT(refused([](JobPlan& j) { j.name = ""; }), HasSubstr("needs a name"));
  EXPECT_THAT(refused([](JobPlan& j) { j.elements = 128; }), HasSubstr("32, 64 or 256, not 128"));
  EXPECT_THAT(refused([](JobPlan& j) {
                j.format = Format::roce;
                j.guarded = true;
              }),
              HasSubstr("leave out guarded"));
  EXPECT_THAT(refused([](JobPlan& j) { j.workers.clear(); }), HasSubstr("1 to 32 workers, not 0"));
  EXPECT_THAT(refused([](JobPlan& j) { j.workers.resize(33); }), HasSubstr("leaf and a spine"));
  EXPECT_THAT(refused([](JobPlan& j) { j.slots = kMaxSlots; }),
              HasSubstr("do not fit the table: 0 to 16383"));
  EXPECT_THAT(refused([](JobPlan& j) { j.workers[1].port = 4; }),
              HasSubstr("worker 1 is on port 4, the switch has ports 0 to 3"));
  EXPECT_THAT(refused([](JobPlan& j) { j.workers[1] = j.workers[0]; }),
              HasSubstr("the port and address of worker 0"));
  EXPECT_THAT(refused([](JobPlan& j) { j.first_slot = 3; }),
              HasSubstr("has slots 0 to 3 in job 'a'"));
  EXPECT_THAT(refused([](JobPlan& j) {
                j.uplink = Uplink{9, {}, 0};
              }),
              HasSubstr("uplink is on port 9"));
}

// Results of the switch above come from the uplink, which is a source of the job as workers are.
TEST(SwitchPlan, RefusesUplinksThatPacketsDoNotTellApart) {
  const Uplink up{3, {}, 0x0a0000f0};
  JobPlan leaf = job_of(2, 64), job = leaf;
  leaf.uplink = up;
  job.name = "b";
  job.workers = {worker(2, 2)};
  job.uplink = up;
  const auto why = [&] { return reason_to_refuse(plan_of({leaf}, 4), job); };
  EXPECT_THAT(why(),
              HasSubstr("the uplink has slots 0 to 3 in job 'a'; give this job other slots"));
  job.uplink = Uplink{0, {}, leaf.workers[0].ip};
  EXPECT_THAT(why(), HasSubstr("the uplink has slots 0 to 3 in job 'a'"));
  job.uplink.reset();
  EXPECT_EQ(why(), "");
  job.workers[0] = {3, {}, up.ip};
  EXPECT_THAT(why(), HasSubstr("worker 0 has slots 0 to 3 in job 'a'"));
  job.first_slot = 4;
  job.uplink = Uplink{2, {}, up.ip};
  EXPECT_EQ(why(), "");
  job.uplink = up;
  EXPECT_THAT(why(), HasSubstr("the uplink has the port and address of worker 0"));
}

}  // namespace
}  // namespace ghostrank::switchml
