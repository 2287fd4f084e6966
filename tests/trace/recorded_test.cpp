// Traces that PyTorch 2.11 recorded on a GPU (recorded/README.md): the import has the calls that an
// independent decoder counts, and the times of the device's kernels, however they were launched.
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/shell.h"
#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::Outcome;
using test::shell;

const std::string kFolder = GHOSTRANK_SOURCE_DIR "/tests/trace/recorded/";

struct RecordedRun {
  const char* name;
  std::vector<std::string> files;
  int ranks, steps;
};
void PrintTo(const RecordedRun& recorded, std::ostream* out) { *out << recorded.name; }

std::vector<std::string> of_four(const std::string& name) {
  std::vector<std::string> out;
  for (const char* rank : {"0", "1", "2", "3"}) out.push_back(name + "-rank" + rank);
  return out;
}

const std::vector<RecordedRun> kRecordedRuns{
    {"eager", {"kineto-eager"}, 1, 2},
    {"compile", {"kineto-compile"}, 1, 2},
    {"reduce_overhead", {"kineto-reduce-overhead"}, 1, 2},
    {"graph", {"kineto-graph"}, 1, 2},
    {"fsdp2", {"kineto-fsdp2-rank0", "kineto-fsdp2-rank1"}, 2, 2},
    {"collectives", {"kineto-collectives-rank0", "kineto-collectives-rank1"}, 2, 1},
    {"joined",
     {"kineto-collectives-rank0", "kineto-collectives-rank1", "et-collectives-rank0",
      "et-collectives-rank1"},
     2,
     1},
    {"megatron_tp_sp_zero", of_four("kineto-megatron-tp-sp-zero"), 4, 1},
    {"megatron_tp_llama", of_four("kineto-megatron-tp-llama"), 4, 1},
    {"megatron_pp", of_four("kineto-megatron-pp"), 4, 1},
    {"megatron_tp_sp_pp", of_four("kineto-megatron-tp-sp-pp"), 4, 1},
    {"megatron_interleaved", of_four("kineto-megatron-interleaved"), 4, 1},
    {"megatron_experts", of_four("kineto-megatron-experts"), 4, 1}};

std::vector<std::string> paths(const RecordedRun& recorded) {
  std::vector<std::string> out;
  for (const std::string& file : recorded.files) out.push_back(kFolder + file + ".json.gz");
  return out;
}

Trace imported(const RecordedRun& recorded) { return import_trace(paths(recorded), "", 0); }

const RecordedRun& named(const std::string& name) {
  return *std::find_if(kRecordedRuns.begin(), kRecordedRuns.end(),
                       [&](const auto& one) { return one.name == name; });
}

// Durations of the device's kernels, copies and fills, without NCCL's calls, summed by step.
std::vector<Picoseconds> device_time(const Trace& trace) {
  std::vector<Picoseconds> out(trace.steps);
  for (const TraceRank& rank : trace.given)
    for (const TraceEvent& event : rank.events)
      if (event.kind == TraceEvent::Kind::compute && event.counted)
        out.at(event.step) += event.duration;
  return out;
}

class RecordedTraces : public testing::TestWithParam<RecordedRun> {};

TEST_P(RecordedTraces, HaveTheCallsAndTheDeviceTimeThatADecoderFinds) {
  if (shell("python3 -c ''").status != 0) GTEST_SKIP() << "there is no python3";
  std::string command = "python3 '" GHOSTRANK_SOURCE_DIR "/tests/trace/decode.py' kineto";
  for (const std::string& path : paths(GetParam())) command += " '" + path + "'";
  const Outcome decoded = shell(command);
  ASSERT_EQ(decoded.status, 0) << decoded.text;
  const json expected = json::parse(decoded.text);
  const Trace trace = imported(GetParam());
  EXPECT_EQ(trace.format, "kineto");
  EXPECT_EQ(static_cast<int>(trace.steps), GetParam().steps);
  const TraceSummary found = summary_of(trace, GetParam().ranks);
  EXPECT_EQ(json(found.ops), expected["ops"]);
  EXPECT_EQ(json(found.stated), expected["bytes"]);
  Picoseconds device = 0;
  for (const Picoseconds step : device_time(trace)) device += step;
  EXPECT_EQ(device / kPicosPerNano, expected["device_ns"].get<Picoseconds>());
}

TEST_P(RecordedTraces, PlayAllCallsInEveryStep) {
  const Trace trace = imported(GetParam());
  const Replay replayed = replay(trace, {GetParam().ranks, {}});
  std::size_t calls = 0, played = 0;
  for (const TraceRank& rank : trace.given)
    for (const TraceEvent& event : rank.events)
      calls += event.kind == TraceEvent::Kind::collective ? 1 : 0;
  for (int rank = 0; rank < GetParam().ranks; ++rank)
    for (int step = 0; step < GetParam().steps; ++step) {
      const Role& role = replayed.workload.roles[replayed.workload.role_of[WorldRank(rank)]];
      for (const OpList& stream : role.iterations.at(static_cast<std::size_t>(step)).streams)
        for (const Op& op : stream) played += op.kind == Op::Kind::collective ? 1 : 0;
    }
  EXPECT_EQ(played, calls);
}

INSTANTIATE_TEST_SUITE_P(Of, RecordedTraces, testing::ValuesIn(kRecordedRuns),
                         [](const auto& of) { return std::string(of.param.name); });

// One launch of a graph stands for all kernels of a step: each is in its step, with a time of its
// own. The same training launched kernel by kernel has the same kernels, which take as long.
TEST(RecordedTracesOfGraphs, HaveTheKernelsThatEagerTrainingHas) {
  const Trace eager = imported(named("eager")), graph = imported(named("graph"));
  EXPECT_EQ(summary_of(graph, 1).ops, summary_of(eager, 1).ops);
  const auto one = device_time(eager), other = device_time(graph);
  ASSERT_EQ(other.size(), 2u);
  for (std::size_t step = 0; step < 2; ++step)
    EXPECT_NEAR(static_cast<double>(other[step]) / static_cast<double>(one[step]), 1, 0.05);
}

// Kernels of coalesced calls do not say what they do. In each of 3 steps a rank sends and receives
// in one batch and coalesces three all-reduces of 65,536 floats.
const RecordedRun kCoalesced{
    "coalesced", {"kineto-coalesced-rank0", "kineto-coalesced-rank1"}, 2, 3};
const RecordedRun kCoalescedJoined{"coalesced_joined",
                                   {"kineto-coalesced-rank0", "kineto-coalesced-rank1",
                                    "et-coalesced-rank0", "et-coalesced-rank1"},
                                   2,
                                   3};

TEST(RecordedTracesCoalesced, HaveTheCallsThatTheHostRecorded) {
  TraceSummary alone = summary_of(imported(kCoalesced), 2);
  for (const char* op : {"send", "recv", "all_to_all", "reduce_scatter", "all_gather", "broadcast"})
    EXPECT_EQ(alone.ops[op], 6u) << op;
  EXPECT_EQ(alone.ops["allreduce"], 6u * 2);  // the coalesced kernel is one call of all bytes
  EXPECT_EQ(alone.stated["send"], 6u * 65536 * 4);
  EXPECT_EQ(alone.stated["allreduce"], 6u * (1 + 3) * 65536 * 4);
  TraceSummary joined = summary_of(imported(kCoalescedJoined), 2);
  EXPECT_EQ(joined.ops["allreduce"], 6u * 4);  // the execution trace knows each
  EXPECT_EQ(joined.stated, alone.stated);
}

TEST(RecordedTracesCoalesced, AreLaunchesAndBatches) {
  const Workload workload = replay(imported(kCoalescedJoined), {2, {}}).workload;
  ASSERT_EQ(workload.launches.size(), 1u);
  EXPECT_EQ(workload.launches[0].size(), 3u);
  const Role& role = workload.roles[workload.role_of[WorldRank(0)]];
  ASSERT_EQ(role.iterations.size(), 3u);
  for (const Program& step : role.iterations) {
    int together = 0;
    std::set<std::size_t> streams;  // of messages: they start together
    for (std::size_t s = 0; s < step.streams.size(); ++s)
      for (const Op& op : step.streams[s]) {
        together += op.launch != 0;
        if (op.kind == Op::Kind::send || op.kind == Op::Kind::recv) streams.insert(s);
      }
    EXPECT_EQ(together, 3);
    EXPECT_EQ(streams.size(), 2u);
  }
}

// A kernel of NCCL says what it does, and so does the call that led to it: both give one program.
TEST(RecordedTracesJoined, PlayAsTheKernelsAlone) {
  const Workload alone = replay(imported(named("collectives")), {2, {}}).workload,
                 joined = replay(imported(named("joined")), {2, {}}).workload;
  for (const int rank : {0, 1})
    EXPECT_EQ(test::program_of(joined, rank), test::program_of(alone, rank));
}

}  // namespace
}  // namespace ghostrank
