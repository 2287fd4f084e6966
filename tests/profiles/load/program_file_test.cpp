// Programs as files: reading returns the program that was written, and an error names the line of
// the file.
#include "profiles/load/program_file.h"

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "profiles/workload/rank_runs.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

void expect_same(const Program& a, const Program& b) {
  EXPECT_EQ(a.stream_names, b.stream_names);
  ASSERT_EQ(a.streams.size(), b.streams.size());
  for (std::size_t s = 0; s < a.streams.size(); ++s) {
    EXPECT_EQ(workers(a, s), workers(b, s));
    EXPECT_EQ(outlives(a, s), outlives(b, s));
    ASSERT_EQ(a.streams[s].size(), b.streams[s].size());
    for (std::size_t i = 0; i < a.streams[s].size(); ++i) {
      const Op &x = a.streams[s][i], &y = b.streams[s][i];
      EXPECT_EQ(x.kind, y.kind);
      EXPECT_EQ(x.func, y.func);
      EXPECT_EQ(x.dtype, y.dtype);
      EXPECT_EQ(x.group, y.group);
      EXPECT_EQ(x.event, y.event);
      EXPECT_EQ(x.previous, y.previous);
      EXPECT_EQ(x.peer, y.peer);
      EXPECT_EQ(x.counts, y.counts);
      EXPECT_EQ(x.tensor, y.tensor);
      EXPECT_EQ(x.reduction, y.reduction);
      EXPECT_EQ(x.floats, y.floats);
      EXPECT_EQ(x.within, y.within);
      EXPECT_EQ(x.launch, y.launch);
      EXPECT_EQ(x.launch_index, y.launch_index);
      EXPECT_EQ(x.count, y.count);
      EXPECT_EQ(x.duration, y.duration);
      if (x.kind != Op::Kind::record && x.kind != Op::Kind::wait) {
        EXPECT_EQ(a.labels[x.label], b.labels[y.label]);
      }
    }
  }
}

void expect_same(const Workload& a, const Workload& b) {
  EXPECT_EQ(a.ranks, b.ranks);
  EXPECT_EQ(a.role_of, b.role_of);
  EXPECT_EQ(a.group_names, b.group_names);
  EXPECT_EQ(a.servers, b.servers);
  EXPECT_EQ(a.services, b.services);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.cycle, b.cycle);
  EXPECT_EQ(a.samples_per_iteration, b.samples_per_iteration);
  EXPECT_EQ(a.flops_per_iteration, b.flops_per_iteration);
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (std::size_t g = 0; g < a.groups.size(); ++g) {
    EXPECT_EQ(a.groups[g].kind, b.groups[g].kind);
    EXPECT_EQ(a.groups[g].members, b.groups[g].members);
  }
  ASSERT_EQ(a.counts.size(), b.counts.size());
  for (std::size_t c = 0; c < a.counts.size(); ++c) EXPECT_EQ(*a.counts[c], *b.counts[c]);
  EXPECT_EQ(a.launches, b.launches);
  ASSERT_EQ(a.roles.size(), b.roles.size());
  for (std::size_t r = 0; r < a.roles.size(); ++r) {
    EXPECT_EQ(a.roles[r].name, b.roles[r].name);
    ASSERT_EQ(a.roles[r].iterations.size(), b.roles[r].iterations.size());
    for (std::size_t i = 0; i < a.roles[r].iterations.size(); ++i)
      expect_same(a.roles[r].iterations[i], b.roles[r].iterations[i]);
  }
}

std::string job(const std::string& parallel) {
  return "schema: ghostrank/job/1\nmodel: {base: gpt2, layers: 4}\ndevice: h100-sxm\n"
         "precision: {parameters: bf16}\n"
         "cluster: {nodes: 2, gpus_per_node: 4, nics_per_node: 2}\nparallel: {" +
         parallel + "}\n";
}

class EveryFramework : public testing::TestWithParam<const char*> {};

void expect_read_back(const std::string& text) {
  const LoadedJob planned = test::load_text(text);
  const Workload workload = plan_workload(planned.spec);
  for (const ProgramForm form : {ProgramForm::yaml, ProgramForm::json}) {
    const LoadedJob again = test::load_text(program_job(planned, workload, form));
    expect_same(plan_workload(again.spec), workload);
    EXPECT_EQ(again.spec.precision.fp8.has_value(), planned.spec.precision.fp8.has_value());
    EXPECT_EQ(program_job(again, workload, form), program_job(planned, workload, form));
  }
}

TEST_P(EveryFramework, IsReadBackAsItWasWritten) { expect_read_back(job(GetParam())); }

TEST(ProgramFile, OfLinearLayersInFp8IsReadBack) {
  std::string text = job("framework: megatron, tp: 2, global_batch: 8, sequence_parallel: true");
  text.replace(text.find("bf16"), 4, "fp8");
  expect_read_back(text);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, EveryFramework,
    testing::Values("framework: ddp", "framework: ddp}\ncollectives: {library: gloo",
                    "framework: fsdp", "framework: torchtitan", "framework: zero1",
                    "framework: zero2", "framework: zero3", "framework: horovod", "framework: dear",
                    "framework: wfbp", "framework: mgwfbp", "framework: bytescheduler",
                    "framework: byteps}\nservers: {count: 2",
                    "framework: phub}\nservers: {count: 2",
                    "framework: megatron, tp: 2, pp: 2, global_batch: 8, sequence_parallel: true, "
                    "distributed_optimizer: true",
                    "framework: megatron, cp: 2, pp: 2, global_batch: 8, schedule: zbv",
                    "framework: megatron, pp: 2, global_batch: 8, schedule: interleaved, "
                    "interleave: 2",
                    "framework: megatron, pp: 2, global_batch: 16, schedule: interleaved, "
                    "interleave: 2, distributed_optimizer: true"));

// A file with ops that no planner makes: v-variants, a root, odd labels.
constexpr const char* kByHand = R"(schema: ghostrank/job/1
cluster: {nodes: 2, gpus_per_node: 2}
program:
  ranks: 4
  groups: {all: [0-3], pair: [0-2/2, 1 3]}
  counts: [[1, 2, 3, 4], [0, 5, 6, 0]]
  roles:
    - name: even
      ranks: 0-2/2
      iterations:
        - compute: |
            compute 1000000 a label with \x5c and \x0a
            all_gather_v all uint8 #0
            broadcast all int32 7@3 from the last
            all_to_all_v pair float32 #1 rows
    - name: odd
      ranks: 1 3
      iterations:
        - compute: |
            all_gather_v all uint8 #0
            broadcast all int32 7@3
          more: |
            send pair +1 int64 5
            recv pair -1 int64 5

            all_to_all_v pair float32 #1
)";

TEST(ProgramFile, MayBeWrittenByHand) {
  const LoadedJob job = test::load_text(kByHand);
  const Workload workload = plan_workload(job.spec);
  EXPECT_EQ(workload.role_of.rows(), (std::vector<std::uint16_t>{0, 1, 0, 1}));
  EXPECT_EQ(workload.groups[2].members, world_ranks({1, 3}));
  const Program& even = workload.roles[0].iterations[0];
  EXPECT_EQ(even.labels[even.streams[0][0].label], "a label with \\ and \n");
  EXPECT_EQ(even.streams[0][2].peer, 3);
  EXPECT_EQ(elements_of(workload, even.streams[0][3]), 11u);
  EXPECT_EQ(workload.roles[1].iterations[0].streams[1][1].peer, -1);
  for (const ProgramForm form : {ProgramForm::yaml, ProgramForm::json})
    expect_same(plan_workload(test::load_text(program_job(job, workload, form)).spec), workload);
}

TEST(ProgramFile, MayStandInAFileOfItsOwn) {
  const test::Folder folder;
  const std::string text = kByHand;
  folder.write("step.yaml", text);
  const std::string path =
      folder.write("job.yaml",
                   "schema: ghostrank/job/1\ncluster: {nodes: 2, gpus_per_node: 2}\n"
                   "program: step.yaml\n");
  const LoadedJob loaded = load_job(path, {});
  EXPECT_EQ(plan_workload(loaded.spec).roles.size(), 2u);
  EXPECT_NE(loaded.config_json.find(folder.path("step.yaml")), std::string::npos);
}

// A stream that outlives its iteration, listed before one that does not.
constexpr const char* kCarried = R"(schema: ghostrank/job/1
cluster: {nodes: 1, gpus_per_node: 2}
program:
  ranks: 2
  groups: {dp: [0-1], tp: [0-1]}
  roles:
    - name: all
      ranks: 0-1
      iterations:
        - compute: |
            compute 1000000 forward
            wait 1 previous
            compute 2000000 backward
            record 0
          comm: |
            workers 2
            outlives
            wait 0
            allreduce dp float32 1024 gradients
            record 1
          more: |
            allreduce tp float32 1024
)";

TEST(ProgramFile, SaysWhatIsCarriedIntoTheNextIteration) {
  const LoadedJob job = test::load_text(kCarried);
  const Workload workload = plan_workload(job.spec);
  const Program& program = workload.roles[0].iterations[0];
  EXPECT_FALSE(outlives(program, 0));
  EXPECT_TRUE(outlives(program, 1));
  EXPECT_FALSE(outlives(program, 2));
  EXPECT_EQ(workers(program, 1), 2);
  EXPECT_TRUE(program.streams[0][1].previous);
  EXPECT_FALSE(program.streams[1][0].previous);
  for (const ProgramForm form : {ProgramForm::yaml, ProgramForm::json})
    expect_same(plan_workload(test::load_text(program_job(job, workload, form)).spec), workload);
}

std::string error_with(const std::string& from, const std::string& to, std::string text = kByHand) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return test::load_error(text.replace(at, from.size(), to));
}

TEST(ProgramFile, NamesTheLineThatIsWrong) {
  EXPECT_EQ(error_with("all_gather_v all uint8 #0\n", "all_gather_v some uint8 #0\n"),
            "job.yaml:13:20: there is no group 'some'; groups has all, pair");
  EXPECT_EQ(error_with("7@3 from", "seven from"),
            "job.yaml:14:20: 'seven' stands where a count is expected; write a number up to "
            "17592186044416");
  EXPECT_EQ(error_with("send pair +1", "sent pair +1"),
            "job.yaml:23:17: 'sent' is no op; write compute, send, recv, record, wait or a "
            "collective");
  EXPECT_EQ(
      error_with("uint8", "fp8"),
      "job.yaml:13:20: 'fp8' is no type; write int32, float32, bfloat16, float16, int64, uint8, "
      "float64 or float8");
  EXPECT_EQ(error_with("all_to_all_v pair float32 #1 rows", "workers 2"),
            "job.yaml:15:20: workers come before the first op of a stream");
  EXPECT_EQ(error_with("previous", "next", kCarried),
            "job.yaml:12:20: something follows the event; write one op a line");
  EXPECT_EQ(error_with("record 0", "record 0 previous", kCarried),
            "job.yaml:14:20: something follows the event; write one op a line");
  EXPECT_EQ(error_with("outlives", "outlives it", kCarried),
            "job.yaml:17:17: something follows outlives; it stands alone");
  EXPECT_EQ(error_with("            allreduce tp float32 1024\n",
                       "            allreduce tp float32 1024\n            outlives\n", kCarried),
            "job.yaml:23:17: outlives comes before the first op of a stream");
  EXPECT_EQ(error_with("#0", "12"), "job.yaml:13:20: all_gather_v takes a list of counts, as #0");
  EXPECT_EQ(error_with("[0, 5, 6, 0]", "6"),
            "job.yaml:6:26: counts has '6' for a list of elements; write a list of lists, as "
            "[[5, 0]]");
}

constexpr const char* kTogether = R"(schema: ghostrank/job/1
cluster: {nodes: 2, gpus_per_node: 2}
program:
  ranks: 4
  groups: {all: [0-3]}
  roles:
    - name: every
      ranks: 0-3
      iterations:
        - compute: |
            reduce_scatter all float32 10 first
            & reduce_scatter all float32 20 second
            & send all +1 uint8 5
            & recv all -1 uint8 5
            allreduce all float32 1
            reduce_scatter all float32 10
            & reduce_scatter all float32 20
)";

TEST(ProgramFile, SaysWhichCallsStartTogether) {
  const LoadedJob job = test::load_text(kTogether);
  const Workload workload = plan_workload(job.spec);
  const OpList& ops = workload.roles[0].iterations[0].streams[0];
  std::vector<std::pair<std::uint32_t, int>> launches;
  for (const Op& op : ops) launches.emplace_back(op.launch, op.launch_index);
  EXPECT_EQ(launches, (std::vector<std::pair<std::uint32_t, int>>{
                          {1, 0}, {1, 1}, {1, 2}, {1, 3}, {0, 0}, {2, 0}, {2, 1}}));
  ASSERT_EQ(workload.launches.size(), 2U);
  EXPECT_EQ(workload.launches[1][1].count, 20U);
  const std::string again = program_job(job, workload, ProgramForm::yaml);
  expect_same(plan_workload(test::load_text(again).spec), workload);
}

TEST(ProgramFile, NamesTheLineOfACallThatCannotStartTogether) {
  const std::string first = "reduce_scatter all float32 10 first";
  EXPECT_EQ(error_with(first, "& " + first, kTogether),
            "job.yaml:11:20: & stands before a call that starts together with the call on the line "
            "before");
  EXPECT_EQ(error_with(first, "compute 5", kTogether),
            "job.yaml:12:20: & stands before a call that starts together with the call on the line "
            "before");
  EXPECT_EQ(error_with("& send all +1 uint8 5", "& compute 5", kTogether),
            "job.yaml:13:20: & stands before a call that starts together with the call on the line "
            "before");
  EXPECT_EQ(error_with(first, "workers 2\n            " + first, kTogether),
            "job.yaml:13:20: calls start together on a stream with one worker; leave out & or "
            "workers");
}

TEST(ProgramFile, TakesARootOnlyWhereTheCallHasOne) {
  const std::string call = "allreduce all float32 1\n";
  for (const char* rooted : {"broadcast", "reduce", "gather", "scatter"})
    EXPECT_EQ(error_with(call, std::string(rooted) + " all float32 1@1\n", kTogether), "")
        << rooted;
  for (const char* rootless :
       {"allreduce", "reduce_scatter", "all_gather", "all_to_all", "barrier"})
    EXPECT_EQ(error_with(call, std::string(rootless) + " all float32 1@1\n", kTogether),
              "job.yaml:15:20: " + std::string(rootless) + " has no root; leave out @");
}

TEST(ProgramFile, NamesWhatDoesNotFitTogether) {
  EXPECT_EQ(error_with("record 1", "record 2", kCarried),
            "job.yaml:4:3: role all waits in iteration 1 for event 1 of the previous iteration, "
            "which records it 0 times; record it once, and wait for it once");
  EXPECT_EQ(error_with("nodes: 2", "nodes: 3"),
            "job.yaml:4:3: the program has 4 ranks but the cluster 6 GPUs; they must be as many");
  EXPECT_EQ(error_with("[0-3]", "[0-4]"),
            "job.yaml:5:18: '0-4' is no list of ranks below 4; write runs such as 0-7 or 0-56/8");
  EXPECT_EQ(error_with("1 3]", "1 2]"),
            "job.yaml:5:38: rank 2 is in two places of group pair; a rank is in one communicator "
            "of a kind");
  EXPECT_EQ(error_with("ranks: 1 3", "ranks: 1"),
            "job.yaml:8:5: rank 3 has no role; every rank needs one");
  EXPECT_EQ(error_with("7@3 from", "7@4 from"),
            "job.yaml:4:3: role even, group all: there is no root 4 in a communicator of 4");
  EXPECT_EQ(error_with("[0, 5, 6, 0]", "[0, 5, 6]"),
            "job.yaml:4:3: role even, group pair: list #1 of counts does not have the 4 counts "
            "that a all_to_all_v of 2 ranks takes");
  EXPECT_EQ(error_with("send pair +1", "send pair +2"),
            "job.yaml:4:3: role odd, group pair: an offset of 2 in a communicator of 2 is the rank "
            "itself; name another member");
  EXPECT_EQ(error_with("[0-2/2, 1 3]", "[0-2/2]"),
            "job.yaml:4:3: role odd, group pair: not every rank of the role is in such a "
            "communicator; add it there");
  EXPECT_NE(error_with("broadcast all int32 7@3\n", "broadcast all int32 8@3\n")
                .find("members of a group must make the same calls in the same order"),
            std::string::npos);
}

TEST(RankRuns, AreShortAndKeepTheOrder) {
  const std::vector<std::vector<int>> lists{
      {0}, {0, 1, 2, 3}, {0, 8, 16}, {5, 3, 4}, {0, 1, 7, 9, 11, 20}, {3, 1000}, {9, 8, 7}};
  const char* texts[] = {"0", "0-3", "0-16/8", "5 3-4", "0-1 7-11/2 20", "3-1000/997", "9 8 7"};
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto ranks = parse_runs(texts[i], 2000);
    ASSERT_TRUE(ranks) << texts[i];
    EXPECT_EQ(numbers_of(*ranks), lists[i]);
    EXPECT_EQ(runs_of(*ranks), texts[i]);
  }
  for (const char* wrong : {"", " ", "a", "3-1", "0-7/0", "0-8", "1,2", "0-", "-1", "0-3 4-7 0-3"})
    EXPECT_FALSE(parse_runs(wrong, 8)) << wrong;
}

}  // namespace
}  // namespace ghostrank
