// The check of events that programs carry from one iteration into the next, before the programs are
// played.
#include "profiles/workload/carry_check.h"

#include <gtest/gtest.h>

#include "profiles/workload/program_builder.h"
#include "profiles/workload/workload_check.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

Workload one_role(std::vector<Program> iterations) {
  Workload workload;
  workload.ranks = 2;
  workload.roles = {{"all", std::move(iterations)}};
  workload.role_of = {0, 0};
  workload.group_names = {"dp", "tp"};
  workload.groups = {{0, world_ranks({0, 1})}, {1, world_ranks({0, 1})}};
  return workload;
}

std::string verdict(std::vector<Program> iterations, std::vector<std::uint32_t> order = {}) {
  Workload workload = one_role(std::move(iterations));
  workload.order = std::move(order);
  return test::error_of([&] { check_workload(workload); });
}

struct Parts {
  bool outlives = true, records = true, waits = true;
  int outliving = 1;       // stream
  int compute_calls = -1;  // kind of group
};

Program program(const Parts& parts) {
  ProgramBuilder out({"compute", "comm", "more"});
  if (parts.outlives) out.outlives(static_cast<std::size_t>(parts.outliving));
  const std::uint32_t event = out.carried_event();
  if (parts.waits) out.wait_previous(0, event);
  out.compute(0, "step", 5);
  if (parts.compute_calls >= 0)
    out.collective(0, "call", Func::all_reduce, static_cast<std::uint16_t>(parts.compute_calls),
                   DataType::float32, 4);
  out.after(1, 0);
  out.collective(1, "gradients", Func::all_reduce, 0, DataType::float32, 4);
  if (parts.records) out.record(1, event);
  return out.take();
}

TEST(CarryCheck, PassesWhatFits) {
  EXPECT_EQ(verdict({program({})}), "");
  EXPECT_EQ(verdict({program({.waits = false}), program({})}), "");
  EXPECT_EQ(verdict({program({.compute_calls = 1})}), "");
}

TEST(CarryCheck, NamesAWaitForWhatTheIterationBeforeDoesNotRecord) {
  const std::string text =
      "role all waits in iteration 1 for event 0 of the previous iteration, which records it 0 "
      "times; record it once, and wait for it once";
  EXPECT_EQ(verdict({program({.records = false})}), text);
  EXPECT_EQ(verdict({program({.records = false}), program({})}), text);
  // By `order`, the iteration that does not record is the last one and repeats.
  EXPECT_EQ(verdict({program({}), program({.records = false, .waits = false})}, {0, 0, 1}), "");
  const std::vector<Program> programs{program({}), program({.records = false})};
  EXPECT_NE(verdict(programs, {0, 0, 1}).find("waits in iteration 3 for event 0"),
            std::string::npos);
}

TEST(CarryCheck, HoldsARecordToOneWaitAndAWaitToOneRecord) {
  Program twice = program({});
  twice.streams[0].push_back(twice.streams[0][0]);
  EXPECT_EQ(verdict({twice}),
            "role all waits 2 times in iteration 1 for event 0 of the previous iteration, which "
            "records it 1 times; record it once, and wait for it once");
  Program both = program({});
  Op wait = both.streams[0][0];
  wait.previous = false;
  both.streams[0].push_back(wait);
  EXPECT_EQ(verdict({both}),
            "role all waits for event 0 of the previous iteration and also in the iteration that "
            "records it; use an event for each");
}

TEST(CarryCheck, WantsAStreamThatOutlivesWhereSomethingIsWaitedFor) {
  EXPECT_EQ(verdict({program({.outlives = false})}),
            "role all waits for event 0 of the previous iteration, but no stream of it outlives an "
            "iteration; mark one, or leave out the wait");
}

TEST(CarryCheck, KeepsTheFirstStreamInItsIteration) {
  EXPECT_EQ(verdict({program({.outliving = 0})}),
            "role all: stream compute is the first one, whose end is the end of the iteration, and "
            "cannot outlive it; mark another stream");
}

TEST(CarryCheck, WantsTheSameStreamsMarkedInAllIterations) {
  const std::string text =
      "role all: stream 1 outlives some of its iterations and not others; mark it alike in all of "
      "them";
  EXPECT_EQ(verdict({program({}), program({.outlives = false, .waits = false})}), text);
  EXPECT_EQ(verdict({program({}), program({.outliving = 2})}), text);
}

// Calls of the next iteration could overtake calls of this one on one rank but not on another.
TEST(CarryCheck, KeepsAGroupToOneStream) {
  EXPECT_EQ(verdict({program({.compute_calls = 0})}),
            "role all: group dp is used by stream comm, which outlives its iteration, and by "
            "stream compute; give each a group of its own, so that all members make the same calls "
            "in the same order");
}

// Waits for the previous iteration pass here, so each iteration must end by itself.
TEST(CarryCheck, FindsWhatWouldWaitForEverWithinAnIteration) {
  Program stuck = program({});
  Op wait;
  wait.kind = Op::Kind::wait;
  wait.event = stuck.events++;
  stuck.streams[2].push_back(wait);
  EXPECT_EQ(verdict({stuck}).substr(0, 69),
            "the plan would wait for ever: role all waits for event 2 on stream mo");
}

}  // namespace
}  // namespace ghostrank
