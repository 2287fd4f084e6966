// Two passes share a GPU: one computes while the other's call is in flight.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/planners/pipeline/pipeline.h"
#include "profiles/planners/plan.h"
#include "profiles/workload/program_builder.h"
#include "tests/profiles/programs.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;

// `computes` computes with an exchange between each two: "a0" -a- "a1".
ProgramBuilder::Script pass(ProgramBuilder& out, const std::string& name, int computes) {
  out.begin_script();
  for (int i = 0; i < computes; ++i) {
    if (i > 0) {
      out.after(kComm, kCompute);
      out.collective(kComm, name, Func::all_to_all, 0, DataType::uint8, 1);
      out.after(kCompute, kComm);
    }
    out.compute(kCompute, name + std::to_string(i), 1000);
  }
  return out.end_script();
}

std::string labels_of(const Program& program, std::size_t stream) {
  std::string text;
  for (const Op& op : program.streams[stream])
    if (op.kind == Op::Kind::compute || op.kind == Op::Kind::collective)
      text += program.labels[op.label] + " ";
  return text;
}

Program of_two(int first, int second) {
  ProgramBuilder out({"compute", "comm"});
  const ProgramBuilder::Script a = pass(out, "a", first), b = pass(out, "b", second);
  out.take_turns(a, b, kCompute, kComm);
  return out.take();
}

TEST(TakeTurns, GoesOnWithTheOtherWhereOneWouldWait) {
  const Program program = of_two(3, 3);
  EXPECT_EQ(labels_of(program, kCompute), "a0 b0 a1 b1 a2 b2 ");
  EXPECT_EQ(labels_of(program, kComm), "a b a b ");
  EXPECT_TRUE(test::streams_end(program));
}

TEST(TakeTurns, EndsWithTheLongerOneAlone) {
  EXPECT_EQ(labels_of(of_two(1, 4), kCompute), "a0 b0 b1 b2 b3 ");
  EXPECT_EQ(labels_of(of_two(4, 2), kCompute), "a0 b0 a1 b1 a2 a3 ");
  EXPECT_TRUE(test::streams_end(of_two(1, 4)));
  EXPECT_TRUE(test::streams_end(of_two(4, 2)));
}

// A pass waits for its own call, not for later calls of the other: with b's exchange behind a's on
// the stream, a1 waits only for a's.
TEST(TakeTurns, WaitForTheirOwnCallsOnly) {
  const Program program = of_two(2, 2);
  std::vector<std::uint32_t> recorded;  // events after a's and b's exchanges, in their order
  for (const Op& op : program.streams[kComm])
    if (op.kind == Op::Kind::record) recorded.push_back(op.event);
  ASSERT_EQ(recorded.size(), 2u);
  std::string seen;
  for (const Op& op : program.streams[kCompute]) {
    if (op.kind == Op::Kind::compute) seen += program.labels[op.label] + " ";
    if (op.kind == Op::Kind::wait) seen += op.event == recorded[0] ? "wait-a " : "wait-b ";
  }
  EXPECT_EQ(seen, "a0 b0 wait-a a1 wait-b b1 ");
}

Workload with_experts(const std::string& parallel) {
  return plan_workload(test::load_text("model: {base: mixtral-8x7b, layers: 8}\n"
                                       "device: {base: h100-sxm, memory_bytes: 0}\n"
                                       "cluster: {nodes: 1, gpus_per_node: 8}\n"
                                       "parallel: {pp: 2, dp: 4, ep: 4, global_batch: 64, " +
                                       parallel + "}\n")
                           .spec);
}

// How often the compute stream changes between forward and backward, by the first letter of labels.
int changes_of(const Program& program) {
  int changes = 0;
  char before = ' ';
  for (const Op& op : program.streams[kCompute]) {
    if (op.kind != Op::Kind::compute) continue;
    const char letter = program.labels[op.label][0];
    if (letter == 'p' || letter == 'u') continue;  // FSDP packs and unpacks in either
    const char pass = letter == 'F' || letter == 'f' ? 'F' : letter == 'o' ? ' ' : 'B';
    changes += pass != before && pass != ' ' && before != ' ';
    before = pass;
  }
  return changes;
}

std::ptrdiff_t joined_slots(const Pipeline& pipeline) {
  const std::vector<Slot> slots = pipeline_slots(pipeline, 0);
  return std::count_if(slots.begin(), slots.end(), [](const Slot& slot) { return slot.joined; });
}

// Two stages, four layers with experts in a pass. In sequence, a joined pair would change between
// forward and backward twice, at the start of each. In turns it changes at every dispatch to the
// experts and every return.
TEST(TakeTurns, OverlapPassesOfDualPipeWithExperts) {
  const Workload workload = with_experts("framework: megatron, schedule: dualpipe");
  for (const Role& role : workload.roles) EXPECT_TRUE(test::streams_end(role.iterations[0]));
  EXPECT_EQ(test::unmatched_transfers(workload), "");
  const std::ptrdiff_t joined = joined_slots({"dualpipe", 2, 2, 16});
  ASSERT_GT(joined, 8);
  EXPECT_GT(changes_of(workload.roles[0].iterations[0]), joined * 2 * 4);
}

// In this V, stage 0 has a part of two layers and a part of one.
TEST(TakeTurns, OverlapPassesOfTorchTitansDualPipeV) {
  const Workload workload = with_experts("framework: torchtitan, schedule: dualpipev");
  for (const Role& role : workload.roles) EXPECT_TRUE(test::streams_end(role.iterations[0]));
  EXPECT_EQ(test::unmatched_transfers(workload), "");
  const std::ptrdiff_t joined = joined_slots({"dualpipev", 2, 2, 16});
  ASSERT_GT(joined, 8);
  const int in_turns = changes_of(workload.roles[0].iterations[0]);
  EXPECT_GT(in_turns, joined * 2 * 2);
  const Workload apart =
      with_experts("framework: torchtitan, schedule: dualpipev, reshard_after_forward: always");
  EXPECT_LT(2 * changes_of(apart.roles[0].iterations[0]), in_turns);
  for (const char* group : {"ep", "pp.forward", "pp.backward"}) {
    const auto sums = [&](const Workload& of) {
      return test::sums_of(of.roles[0].iterations[0], of, group);
    };
    EXPECT_EQ(sums(workload).bytes, sums(apart).bytes) << group;
    EXPECT_EQ(sums(workload).sent, sums(apart).sent) << group;
  }
}

}  // namespace
}  // namespace ghostrank
