// Programs written in other projects' forms, and read again: the same calls, bytes and, where the
// form has them, computations.
#include <set>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "profiles/trace/readers/chakra_file.h"
#include "profiles/trace/writers/chakra.h"
#include "profiles/trace/writers/issue_order.h"
#include "profiles/trace/writers/param.h"
#include "profiles/trace/writers/simai.h"
#include "profiles/workload/program_builder.h"
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

// Elements of calls and messages that all ranks make, by bytes of an element.
std::map<std::size_t, std::uint64_t> widths(const Workload& workload) {
  std::map<std::size_t, std::uint64_t> out;
  for (const std::uint16_t role : workload.role_of)
    for (const OpList& stream : workload.roles[role].iterations.back().streams)
      for (const Op& op : stream)
        if (communicates(op)) out[bytes_of(op.dtype)] += op.count;
  return out;
}

// Kinds of groups in which there are collectives.
std::set<std::uint16_t> kinds_called(const Workload& workload) {
  std::set<std::uint16_t> out;
  for (const Role& role : workload.roles)
    for (const OpList& stream : role.iterations.back().streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::collective) out.insert(op.group);
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

Workload plan_of(const std::string& parallel) {
  return plan_workload(test::load_text("model: gpt2\ndevice: h100-sxm\n"
                                       "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2}\n"
                                       "collectives: {library: gloo}\nparallel: {" +
                                       parallel + "}")
                           .spec);
}
constexpr auto kLast = static_cast<std::size_t>(-1);

// The PARAM traces of all ranks.
std::vector<std::string> written_as_param(const Workload& workload, const test::Folder& folder) {
  const IssueOrders orders(workload, kLast);
  std::vector<std::string> files;
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    files.push_back(
        folder.write("rank" + to_string(rank) + ".json", param_trace(workload, orders, rank)));
  return files;
}

class Export : public testing::TestWithParam<const char*> {};

TEST_P(Export, GivesChakraThatReadsAsTheSameCalls) {
  if (!can_read_chakra()) GTEST_SKIP() << "built without protobuf";
  const test::Folder folder;
  const Workload planned = plan_of(GetParam());
  std::vector<std::string> files{folder.write("job.groups.json", chakra_groups(planned))};
  for (const WorldRank rank : each<WorldRank>(planned.ranks))
    files.push_back(
        folder.write("job." + to_string(rank) + ".et", chakra_trace(planned, rank, kLast)));
  const Workload read = test::played(files).workload;
  check_workload(read);
  EXPECT_EQ(read.ranks, planned.ranks);
  EXPECT_EQ(totals(read), totals(planned));
  EXPECT_EQ(widths(read), widths(planned));
  for (const std::uint16_t kind : kinds_called(planned))
    EXPECT_EQ(
        std::count(read.group_names.begin(), read.group_names.end(), planned.group_names[kind]), 1)
        << planned.group_names[kind];
  for (const WorldRank rank : each<WorldRank>(planned.ranks))
    EXPECT_NEAR(compute_seconds(read, rank), compute_seconds(planned, rank), 1e-6);
}

TEST_P(Export, GivesParamTracesThatReadAsTheSameCalls) {
  const test::Folder folder;
  const Workload planned = plan_of(GetParam());
  const Workload read = test::played(written_as_param(planned, folder)).workload;
  check_workload(read);
  EXPECT_EQ(read.ranks, planned.ranks);
  EXPECT_EQ(totals(read), totals(planned));
}
INSTANTIATE_TEST_SUITE_P(Plans, Export,
                         testing::Values("framework: ddp", "framework: fsdp",
                                         "framework: megatron, tp: 2, pp: 2, global_batch: 8",
                                         "framework: megatron, pp: 4, global_batch: 4",
                                         "framework: megatron, pp: 2, schedule: dualpipev, "
                                         "global_batch: 8"),
                         [](const auto& one) { return "Plan" + std::to_string(one.index); });

// Calls and bytes by function. SimAI's rows have collectives only, in bytes without a type.
std::map<Func, std::pair<std::uint64_t, std::uint64_t>> by_function(const Workload& workload) {
  std::map<Func, std::pair<std::uint64_t, std::uint64_t>> out;
  for (const auto& [key, sum] : totals(workload)) out[key.second] = sum;
  return out;
}

TEST(SimAiWorkloads, ReadAsTheSameCallsAndComputations) {
  for (const char* parallel :
       {"framework: ddp", "framework: wfbp", "framework: megatron, overlap_grad_reduce: false"}) {
    const test::Folder folder;
    const Workload planned = plan_of(parallel);
    const Workload read =
        test::played({folder.write("job.txt", simai_workload(planned, kLast))}).workload;
    check_workload(read);
    EXPECT_EQ(read.ranks, planned.ranks);
    EXPECT_EQ(by_function(read), by_function(planned)) << parallel;
    EXPECT_NEAR(compute_seconds(read, WorldRank(3)), compute_seconds(planned, WorldRank(3)), 1e-6)
        << parallel;
  }
}

// compute  F | A blocks | B0 |     B1      | wait | U
// nccl                        K0      K1
TEST(SimAiWorkloads, OverlapWhatThePlanOverlaps) {
  const auto made = [](bool more) {
    ProgramBuilder b({"compute", "nccl"});
    b.compute(0, "F 1", 30'000);
    b.collective(0, "A", Func::all_gather, 0, DataType::bfloat16, 10);
    for (const char* name : {"B0", "B1"}) {
      b.compute(0, name, 50'000);
      b.after(1, 0);
      b.collective(1, "K", Func::all_reduce, 1, DataType::float32, 20);
    }
    b.after(0, 1);
    b.compute(0, "U", 7'000);
    if (more) {
      b.after(1, 0);
      b.collective(1, "beside", Func::all_reduce, 1, DataType::float32, 1);
      b.collective(0, "again", Func::all_reduce, 1, DataType::float32, 1);
    }
    Workload workload;
    workload.ranks = 4;
    workload.roles = {{"all", {b.take()}}};
    workload.role_of.assign(4, 0);
    workload.group_names = {"tp", "dp"};
    workload.groups = {{0, {WorldRank(0), WorldRank(1)}},
                       {0, {WorldRank(2), WorldRank(3)}},
                       {1, {WorldRank(0), WorldRank(2)}},
                       {1, {WorldRank(1), WorldRank(3)}}};
    return workload;
  };
  EXPECT_EQ(simai_workload(made(false), kLast),
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 "
            "all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n3\n"
            "F_1\t-1\t30\tALLGATHER\t40\t0\tNONE\t0\t0\tNONE\t0\t0\n"
            "B1\t-1\t0\tNONE\t0\t0\tNONE\t0\t50\tALLREDUCE\t80\t7\n"
            "B0\t-1\t0\tNONE\t0\t0\tNONE\t0\t50\tALLREDUCE\t80\t0\n");
  EXPECT_NE(test::error_of([&] {
              simai_workload(made(true), kLast);
            }).find("awaited before the end, which SimAI's rows cannot say"),
            std::string::npos);
  EXPECT_NE(test::error_of([] {
              simai_workload(plan_of("framework: megatron, pp: 4, global_batch: 4"), kLast);
            }).find("SimAI"),
            std::string::npos);
  Workload rooted = made(false);
  for (const int root : {0, 1}) {
    ProgramBuilder b({"compute"});
    b.collective(0, "B", Func::broadcast, 0, DataType::float32, 10, root);
    rooted.roles[0].iterations = {b.take()};
    if (root == 0) simai_workload(rooted, kLast);
  }
  EXPECT_EQ(test::error_of([&] { simai_workload(rooted, kLast); }),
            "SimAI's broadcast has no root, and here member 1 sends; export another format");
  ProgramBuilder two({"compute", "copies"});
  two.compute(0, "F", 30'000);
  two.compute(1, "C", 30'000);
  rooted.roles[0].iterations = {two.take()};
  EXPECT_EQ(test::error_of([&] { simai_workload(rooted, kLast); }),
            "streams compute and copies both compute, and SimAI's rows follow each other; export "
            "another format");
  Workload odd = made(false);
  odd.groups[0].members = {WorldRank(0), WorldRank(3)};
  odd.groups[1].members = {WorldRank(1), WorldRank(2)};
  EXPECT_NE(test::error_of([&] { simai_workload(odd, kLast); }).find("communicator tp is neither"),
            std::string::npos);
}

// What Megatron does last: it sums the gradients' norm, steps, and averages the loss.
//
// compute  B |    | wait | norm | U |
// nccl         K0                     loss
TEST(SimAiWorkloads, EndWithWhatFollowsOverlappingCalls) {
  ProgramBuilder b({"compute", "nccl"});
  b.compute(0, "B", 50'000);
  b.after(1, 0);
  b.collective(1, "K0", Func::all_reduce, 0, DataType::float32, 20);
  b.compute(0, "B", 30'000);
  b.after(0, 1);
  b.collective(0, "norm", Func::all_reduce, 1, DataType::float32, 1);
  b.compute(0, "U", 7'000);
  b.after(1, 0);
  b.collective(1, "loss", Func::all_reduce, 0, DataType::float32, 2);
  b.after(0, 1);
  Workload workload;
  workload.ranks = 2;
  workload.roles = {{"all", {b.take()}}};
  workload.role_of.assign(2, 0);
  workload.group_names = {"dp", "all"};
  workload.groups = {{0, {WorldRank(0), WorldRank(1)}}, {1, {WorldRank(0), WorldRank(1)}}};
  EXPECT_EQ(simai_workload(workload, kLast),
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 1 "
            "all_gpus: 2 checkpoints: 0 checkpoint_initiates: 0\n3\n"
            "loss\t-1\t0\tNONE\t0\t0\tNONE\t0\t0\tALLREDUCE\t8\t7\n"
            "B\t-1\t0\tNONE\t0\t0\tNONE\t0\t30\tALLREDUCE\t4\t0\n"
            "B\t-1\t0\tNONE\t0\t0\tNONE\t0\t50\tALLREDUCE\t80\t0\n");
}

// compute  F | record 0 | B | record 1 | wait 2 | U
// nccl       wait 0 K0 | wait 1 K1 | record 2
TEST(IssueOrder, OverlapsWhatStreamsOverlapAndAwaitsWhatTheyAwait) {
  ProgramBuilder b({"compute", "nccl"});
  b.compute(0, "F", 30);
  b.after(1, 0);
  b.collective(1, "K0", Func::all_reduce, 0, DataType::float32, 10);
  b.compute(0, "B", 50);
  b.after(1, 0);
  b.collective(1, "K1", Func::all_reduce, 0, DataType::float32, 20);
  b.after(0, 1);
  b.compute(0, "U", 7);
  const Program program = b.take();
  std::vector<std::tuple<std::string, Picoseconds, std::vector<std::size_t>>> order;
  for (const IssuedOp& one : issue_order(program))
    order.emplace_back(program.labels[one.op->label], one.start, one.ends);
  using Ends = std::vector<std::size_t>;
  EXPECT_EQ(order, (decltype(order){{"F", 0, Ends{}},
                                    {"K0", 30, Ends{}},
                                    {"B", 30, Ends{}},
                                    {"K1", 80, Ends{1}},
                                    {"U", 80, Ends{3}}}));
}

TEST(ParamTraces, StartCallsWithoutWaitingAndSayWhenComputationsLetThemStart) {
  ProgramBuilder b({"compute", "nccl"});
  b.compute(0, "forward", 30 * kPicosPerMicro);
  b.after(1, 0);
  b.ragged(1, b.label("tokens"), Func::all_to_all_v, 0, DataType::bfloat16, 0);
  b.collective(0, "weights", Func::broadcast, 0, DataType::int32, 5, 1);
  Workload workload;
  workload.ranks = 2;
  workload.roles = {{"all", {b.take()}}};
  workload.role_of.assign(2, 0);
  workload.group_names = {"ep"};
  workload.groups = {{0, {WorldRank(1), WorldRank(0)}}};
  workload.counts = {
      std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{1, 2, 3, 4})};
  EXPECT_EQ(param_trace(workload, IssueOrders(workload, kLast), WorldRank(0)),
            R"([
{"comms":"init","req":0,"pg_id":0,"pg_desc":"ep","global_ranks":[1,0],"world_size":2},
{"comms":"broadcast","req":2,"pg_id":0,"world_size":2,"startTime_ns":30000,"markers":["weights"],"dtype":"int","in_msg_size":5,"out_msg_size":5,"root":0},
{"comms":"all_to_allv","req":3,"pg_id":0,"world_size":2,"startTime_ns":30000,"markers":["tokens"],"dtype":"bfloat16","in_msg_size":7,"out_msg_size":6,"in_split":[3,4],"out_split":[2,4]},
{"comms":"wait","req":2,"pg_id":0},
{"comms":"wait","req":3,"pg_id":0}
]
)");
}

// Two streams, each with a call and a computation that waits for it. By itself each rank would list
// the call first that its own computations hold up less, and wait for it before the other one.
//   rank 0   C A D | B E        rank 1   A D | C B E
TEST(ParamTraces, AgreeOnOneOrderOfAllRanks) {
  Workload workload;
  workload.ranks = 2;
  for (const int late : {0, 1}) {
    ProgramBuilder b({"one", "other"});
    b.compute(late, "C", 10 * kPicosPerMicro);
    for (const int s : {0, 1}) {
      b.collective(s, s == 0 ? "A" : "B", Func::all_reduce, static_cast<std::uint16_t>(s),
                   DataType::float32, 10);
      b.compute(s, "after", 5 * kPicosPerMicro);
    }
    workload.roles.push_back({"rank " + std::to_string(late), {b.take()}});
  }
  workload.role_of = {0, 1};
  workload.group_names = {"a", "b"};
  workload.groups = {{0, {WorldRank(0), WorldRank(1)}}, {1, {WorldRank(0), WorldRank(1)}}};
  check_workload(workload);
  const test::Folder folder;
  const Workload read = test::played(written_as_param(workload, folder)).workload;
  check_workload(read);
  EXPECT_EQ(totals(read), totals(workload));
}

// A launch that receives before it sends, at both ends.
TEST(ParamTraces, StartTheCallsOfALaunchTogether) {
  Workload workload;
  workload.ranks = 2;
  ProgramBuilder b({"compute"});
  b.begin_launch();
  b.recv(0, b.label("in"), 0, 1, DataType::float32, 10);
  b.send(0, b.label("out"), 0, 1, DataType::float32, 10);
  b.end_launch(workload.launches);
  workload.roles = {{"all", {b.take()}}};
  workload.role_of.assign(2, 0);
  workload.group_names = {"ring"};
  workload.groups = {{0, {WorldRank(0), WorldRank(1)}}};
  check_workload(workload);
  const test::Folder folder;
  const Workload read = test::played(written_as_param(workload, folder)).workload;
  check_workload(read);
  EXPECT_EQ(totals(read), totals(workload));
}

TEST(ExportRefusals, NameWhatAFormatLacks) {
  Workload uneven = plan_of("framework: ddp");
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::all_gather_v;
  uneven.roles[0].iterations.back().streams[1].push_back(op);
  const IssueOrders orders(uneven, kLast);
  for (const std::string& error :
       {test::error_of([&] { chakra_trace(uneven, WorldRank(0), kLast); }),
        test::error_of([&] { param_trace(uneven, orders, WorldRank(0)); })})
    EXPECT_NE(error.find("calls of uneven sizes"), std::string::npos) << error;
}

}  // namespace
}  // namespace ghostrank
