// One run of PyTorch 2.11 on NCCL 2.28.9, two ranks on one GPU (torch_run.py), as its recorders saw
// it: NCCL's log, our profiler plugin, our network plugin, PyTorch's Flight Recorder. They must
// agree.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/trace/readers/import.h"
#include "profiles/trace/replay.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank::nccl_trace {
namespace {

std::string file(const std::string& name) {
  return std::string(GHOSTRANK_NCCL_RECORDED) + "/pytorch/" + name;
}

TraceSummary summary(const std::string& before, const std::string& after) {
  const Trace trace = import_trace({file(before + "0" + after), file(before + "1" + after)}, "", 0);
  return summary_of(trace, 2);
}

TEST(RecordedTorch, ItsRecordersCountTheSameCalls) {
  TraceSummary log = summary("log.", ".gz"), profiler = summary("calls.", ".jsonl.gz"),
               flight = summary("flight_rank_", ".gz");
  for (const char* op : {"reduce_scatter", "all_gather", "broadcast"}) {
    EXPECT_EQ(log.ops[op], 10u) << op;  // in each of 5 steps of 2 ranks
    EXPECT_EQ(profiler.ops[op], 10u) << op;
    EXPECT_EQ(flight.ops[op], 10u) << op;
    EXPECT_EQ(log.in[op], profiler.in[op]) << op;
    EXPECT_EQ(log.in[op], flight.in[op]) << op;
  }
  // An all-reduce and three coalesced ones a step; a barrier is one of one element.
  EXPECT_EQ(log.ops["allreduce"], 2u * (5 * 4 + 2));
  EXPECT_EQ(profiler.ops["allreduce"], log.ops["allreduce"]);
  EXPECT_EQ(profiler.in["allreduce"], log.in["allreduce"]);
  EXPECT_EQ(flight.in["allreduce"], log.in["allreduce"] - 2 * 4);  // dumped before the last barrier
  // To the profiler, NCCL tells an all-to-all as the sends and receives that it becomes.
  EXPECT_EQ(flight.ops["send"], 10u);
  EXPECT_EQ(log.in["send"], flight.in["send"]);
  EXPECT_EQ(profiler.ops["send"], log.ops["send"] + log.ops["all_to_all"]);
}

// Each can be played: its ranks make the same calls in the same order.
TEST(RecordedTorch, OfAllOfThemTheRanksFitTogether) {
  for (const auto& [before, after] :
       {std::pair{"log.", ".gz"}, {"calls.", ".jsonl.gz"}, {"flight_rank_", ".gz"}}) {
    const Trace trace = import_trace(
        {file(std::string(before) + "0" + after), file(std::string(before) + "1" + after)}, "", 0);
    EXPECT_EQ(replay(trace, {}).workload.ranks, 2) << before;
  }
}

TEST(RecordedTorch, TheProfilersMessagesAreThoseOfTheNetwork) {
  for (const std::string rank : {"0", "1"}) {
    std::vector<std::uint64_t> told, sent;
    std::istringstream lines(read_trace_file(file("calls." + rank + ".jsonl.gz")));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (!record.contains("proxy_trace") || !record["proxy_trace"]["send"]) continue;
      for (const auto& message : record["proxy_trace"]["messages"])
        told.push_back(message["bytes"]);
    }
    std::ifstream trace(file("trace." + rank));
    std::string verb;
    std::uint64_t connection = 0, bytes = 0;
    for (std::string line; std::getline(trace, line);)
      if (std::istringstream in(line); in >> verb >> connection >> bytes && verb == "send")
        sent.push_back(bytes);
    std::ranges::sort(told);
    std::ranges::sort(sent);
    EXPECT_GT(sent.size(), 200u);
    EXPECT_EQ(told, sent) << "rank " << rank;
  }
}

}  // namespace
}  // namespace ghostrank::nccl_trace
