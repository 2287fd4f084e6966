// Programs written as Chakra traces, and read again: the same calls, bytes and computations.
#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "profiles/trace/readers/chakra_file.h"
#include "profiles/trace/writers/chakra.h"
#include "profiles/workload/workload_check.h"
#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

using Totals = std::map<std::pair<Op::Kind, Func>, std::pair<std::uint64_t, std::uint64_t>>;

// Calls and bytes of the last iteration of all ranks, by kind.
Totals totals(const Workload& workload) {
  Totals out;
  for (const std::uint16_t role : workload.role_of)
    for (const OpList& stream : workload.roles[role].iterations.back().streams)
      for (const Op& op : stream) {
        if (op.kind != Op::Kind::collective && op.kind != Op::Kind::send &&
            op.kind != Op::Kind::recv)
          continue;
        auto& [calls, bytes] =
            out[{op.kind, op.kind == Op::Kind::collective ? op.func : Func::send_recv}];
        ++calls;
        bytes += op.count * bytes_of(op.dtype);
      }
  return out;
}

double compute_seconds(const Workload& workload, WorldRank rank) {
  const std::uint16_t role = workload.role_of[rank];
  Picoseconds sum = 0;
  for (const OpList& stream : workload.roles[role].iterations.back().streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::compute) sum += op.duration;
  return seconds(sum);
}

class Export : public testing::TestWithParam<const char*> {};

TEST_P(Export, GivesTracesThatReadAsTheSameCalls) {
  if (!can_read_chakra()) GTEST_SKIP() << "built without protobuf";
  const test::Folder folder;
  const Workload planned =
      plan_workload(test::load_text("model: gpt2\ndevice: h100-sxm\n"
                                    "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2}\n"
                                    "collectives: {library: gloo}\nparallel: {" +
                                    std::string(GetParam()) + "}")
                        .spec);
  std::vector<std::string> files{folder.write("job.groups.json", chakra_groups(planned))};
  for (const WorldRank rank : each<WorldRank>(planned.ranks))
    files.push_back(folder.write("job." + to_string(rank) + ".et",
                                 chakra_trace(planned, rank, static_cast<std::size_t>(-1))));
  const Workload read = test::played(files).workload;
  check_workload(read);
  EXPECT_EQ(read.ranks, planned.ranks);
  EXPECT_EQ(totals(read), totals(planned));
  for (const WorldRank rank : each<WorldRank>(planned.ranks))
    EXPECT_NEAR(compute_seconds(read, rank), compute_seconds(planned, rank), 1e-3);
}
INSTANTIATE_TEST_SUITE_P(Plans, Export,
                         testing::Values("framework: ddp", "framework: fsdp",
                                         "framework: megatron, tp: 2, pp: 2, global_batch: 8",
                                         "framework: megatron, pp: 4, global_batch: 4"),
                         [](const auto& one) { return "Plan" + std::to_string(one.index); });

TEST(ExportRefusals, NameWhatChakraLacks) {
  const Workload waits = plan_workload(
      test::load_text("model: gpt2\ndevice: h100-sxm\ncluster: {nodes: 4, gpus_per_node: 1, "
                      "nics_per_node: 1}\nparallel: {framework: ddp}")
          .spec);
  Workload uneven = waits;
  Program& program = uneven.roles[0].iterations.back();
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::all_gather_v;
  program.streams[1].push_back(op);
  EXPECT_NE(
      test::error_of([&] { chakra_trace(uneven, WorldRank(0), 99); }).find("calls of uneven sizes"),
      std::string::npos);
}

}  // namespace
}  // namespace ghostrank
