// The text formats: the meaning of their rows, and refusals.
#include "tests/trace/formats.h"

#include <map>

#include <gtest/gtest.h>

#include "profiles/workload/workload_check.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::Formats;
using test::program_of;
using Counts64 = std::map<std::string, std::uint64_t>;

const char* const kHead =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 ";

TEST_F(Formats, SimaiRunsForwardThenBackwardWithWeightsBeside) {
  const std::string file =
      folder.write("w.txt", std::string(kHead) +
                                "all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n2\n"
                                "a -1 10 ALLGATHER 80 20 REDUCESCATTER 80 5 NONE 0 1\n"
                                "b -1 30 NONE 0 40 NONE 0 6 ALLREDUCE 64 100\n");
  const Replay replay = test::played({file});
  EXPECT_EQ(program_of(replay.workload, 3),
            "compute:\n"
            "compute 10000 a forward\nrecord 0\nwait 1\ncompute 1000 a update\n"
            "compute 30000 b forward\ncompute 40000 b input gradient\n"
            "compute 6000 b weight gradient\nrecord 2\ncompute 20000 a input gradient\nrecord 0\n"
            "wait 1\ncompute 1000 a update\ncompute 5000 a weight gradient\n"
            "update:\nwait 3\ncompute 100000 b update\n"
            "tp:\nwait 0\nall_gather tp uint8 40 a forward\nrecord 1\nwait 0\n"
            "reduce_scatter tp uint8 40 a input gradient\nrecord 1\n"
            "dp:\nwait 2\nallreduce dp uint8 64 b weight gradient\nrecord 3\n");
  ASSERT_EQ(replay.workload.groups.size(), 4U);
  EXPECT_EQ(replay.workload.groups[1].members, world_ranks({0, 2}));
  EXPECT_EQ(replay.workload.groups[3].members, world_ranks({1, 3}));
}

TEST_F(Formats, SimaiRecomputesFromTheCheckpoint) {
  const std::string file = folder.write(
      "w.txt", std::string(kHead) +
                   "all_gpus: 2 checkpoints: 1 0 checkpoint_initiates: 1 2\n3\n"
                   "a -1 1 NONE 0 4 NONE 0 0 NONE 0 1\nb -1 2 NONE 0 5 NONE 0 0 NONE 0 1\n"
                   "c -1 3 NONE 0 6 NONE 0 0 NONE 0 1\n");
  EXPECT_EQ(program_of(test::played({file}).workload, 0),
            "compute:\ncompute 1000 a forward\ncompute 2000 b forward\ncompute 3000 c forward\n"
            "compute 1000 a forward\ncompute 2000 b forward\n"
            "compute 6000 c input gradient\ncompute 5000 b input gradient\ncompute 4000 a input "
            "gradient\n");
}

TEST_F(Formats, SimaiRefusesWhatItCannotTrust) {
  EXPECT_EQ(
      refused("w.txt", "HYBRID_DLRM 3\n0\n"),
      "w.txt:1:1: policy 'HYBRID_DLRM' is not played; MICRO, DATA, MODEL, HYBRID_TRANSFORMER and "
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD are");
  EXPECT_EQ(refused("w.txt", "MICRO\n1000000000\n"),
            "w.txt:2:1: the number of rows: '1000000000' is no number from 0 to 1000000");
  EXPECT_EQ(refused("w.txt", "MICRO\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n"),
            "w.txt:2:1: the file says 2 rows but has 1; is it cut off?");
  EXPECT_EQ(refused("w.txt", "MICRO\n1\na -1 nan NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n"),
            "w.txt:3:6: nanoseconds: 'nan' is no number from 0 to 1000000000000000");
  EXPECT_EQ(refused("w.txt", "MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLTOSOME 8 1\n"),
            "w.txt:3:26: 'ALLTOSOME' is no collective of SimAI");
}

TEST_F(Formats, ParamOverlapsWhatIsWaitedForLater) {
  std::vector<std::string> files;
  for (const int rank : {0, 1})
    files.push_back(folder.write(
        "rank" + std::to_string(rank) + ".json",
        R"([{"comms": "init", "pg_id": 0, "global_ranks": [0, 1], "world_size": 2, "req": 0},
            {"comms": "all_reduce", "in_msg_size": 10, "out_msg_size": 10, "dtype": "Half", "req": 1, "pg_id": 0},
            {"compute": "gemm", "count": 2, "mm_dim": 10, "dtype": "float"},
            {"comms": "wait", "req": 1, "pg_id": 0},
            {"comms": "all_to_allv", "in_msg_size": 6, "out_msg_size": 6, "in_split": [2, 4],
             "out_split": [2, 4], "dtype": "float8_e4m3fn", "req": 2, "pg_id": 0},
            {"comms": "wait", "req": 9, "pg_id": 0}])"));
  const Trace trace = import_trace(files, "", 0);
  EXPECT_EQ(trace.left_out.at("waits for calls that the trace does not have"), 2U);
  EXPECT_EQ(summary_of(trace, 2).stated, (Counts64{{"all_to_all_v", 12}, {"allreduce", 40}}));
  const Replay replay = ghostrank::replay(trace, {0, [](double flops, double bytes) {
                                                    EXPECT_EQ(flops, 4000);
                                                    EXPECT_EQ(bytes, 2400);
                                                    return Picoseconds{77};
                                                  }});
  EXPECT_EQ(program_of(replay.workload, 1),
            "compute:\ncompute 77 gemm\nrecord 0\n"
            "group:\nallreduce group bfloat16 10 all_reduce\nwait 0\nall_to_all_v group uint8 #0 "
            "all_to_allv\n");
  EXPECT_EQ(*replay.workload.counts.front(), (std::vector<std::uint64_t>{2, 4, 2, 4}));
}

TEST_F(Formats, ParamRanksLieBelowTheWorldSize) {
  for (const int rank : {0, 2})
    folder.write("rank" + std::to_string(rank) + ".json",
                 R"([{"comms": "barrier", "pg_id": 0, "world_size": 2}])");
  EXPECT_NE(test::error_of([&] {
              test::played({folder.path("*.json")});
            }).find("rank2.json: by its name a trace of rank 2, but world_size is 2"),
            std::string::npos);
}

TEST_F(Formats, ParamTakesANumberThatIsPartOfANameForNoRank) {
  const std::string barrier = R"([{"comms": "barrier", "pg_id": 0, "world_size": 4}])";
  const auto rank = [&](const std::string& name) {
    return import_trace({folder.write(name, barrier)}, "", 0).given.front().rank.value();
  };
  EXPECT_EQ(rank("resnet50.json"), 0);
  EXPECT_EQ(import_trace({folder.path("resnet50.json")}, "", 0).notes.back(),
            folder.path("resnet50.json") +
                ": its name says no rank (as trace_3.json does): taken as rank 0's");
  for (const char* name : {"3.json", "rank3.json", "myRank3.json", "resnet50_3.json", "run-3.json"})
    EXPECT_EQ(rank(name), 3) << name;
  // Files that differ in nothing else are ranks.
  const Trace all =
      import_trace({folder.write("gpt2.json", barrier), folder.write("gpt1.json", barrier)}, "", 0);
  ASSERT_EQ(all.given.size(), 2U);
  EXPECT_EQ(all.given.back().rank.value(), 2);
  EXPECT_NE(test::error_of([&] {
              import_trace({folder.path("gpt1.json"), folder.path("resnet50.json")}, "", 0);
            }).find("which rank's trace is this?"),
            std::string::npos);
}

TEST_F(Formats, ParamStartsABatchTogether) {
  for (const int rank : {0, 1}) {
    const std::string ends = R"("src_rank": )" + std::to_string(1 - rank) + R"(, "dst_rank": )" +
                             std::to_string(1 - rank) + R"(, "use_batch": true, "dtype": "int",
                             "in_msg_size": 4, "out_msg_size": 4, "pg_id": 0, "world_size": 2})";
    folder.write(std::to_string(rank) + ".json",
                 R"([{"comms": "irecv", )" + ends + R"(, {"comms": "isend", )" + ends +
                     R"(, {"comms": "batch_isend_irecv", "pg_id": 0},
                     {"comms": "barrier", "pg_id": 0, "world_size": 2}])");
  }
  const Workload workload = test::played({folder.path("*.json")}).workload;
  EXPECT_EQ(workload.roles.size(), 1U) << "both ranks do the same";
  EXPECT_EQ(program_of(workload, 0),
            "compute:\ngroup:\nwait 0\nwait 1\nbarrier group uint8 0 barrier\n"
            "p2p 0:\nrecv? p2p +1 float32 4 irecv\nrecord 0\n"
            "p2p 1:\nsend? p2p +1 float32 4 isend\nrecord 1\n");
}

TEST_F(Formats, JsonErrorsHaveLineAndColumn) {
  EXPECT_EQ(refused("0.json", "[{\"comms\": \"barrier\",\n  \"x\": nan}]"),
            "0.json:2:9: Invalid value. correct the JSON, or write the file again");
  EXPECT_EQ(refused("0.json",
                    "[{\"comms\": \"all_reduce\", \"in_msg_size\": 1000000000000000000, \"dtype\": "
                    "\"int\"}]"),
            "0.json: element 0: in_msg_size is no integer from 0 to 8796093022208");
  EXPECT_EQ(
      refused("0.json",
              R"([{"compute": "gemm", "count": 1048576, "mm_dim": 16777216, "dtype": "int"}])"),
      "0.json: element 0: a gemm of more than 2^44 bytes");
  EXPECT_EQ(refused("0.json", "[{\"comms\":" + std::string(100, '[')),
            "0.json:1:74: nested too deep; no trace is");
}

// A trace of one GPU has no calls. That can be seen, but not played.
TEST_F(Formats, CountTracesWithoutAnythingToPlay) {
  const std::string trace = R"({"schema": "1.1.1-chakra.0.0.4", "nodes": [)"
                            R"({"id": 2, "name": "aten::mm", "ctrl_deps": 1}]})";
  const Trace read = import_trace({folder.write("0.json", trace)}, "", 0);
  EXPECT_EQ(read.used, 0U);
  EXPECT_EQ(summary_of(read, 1).ops, Counts64{});
  EXPECT_EQ(read.left_out,
            (Counts64{{"nodes that are no collectives: the trace has no times of devices", 1}}));
}

TEST_F(Formats, RefuseTracesWithoutAnythingToPlay) {
  const std::string nothing = ": there is nothing in it that is played";
  EXPECT_EQ(refused("0.goal", "num_ranks 1\nrank 0 {\n}\n"), "0.goal" + nothing);
  EXPECT_EQ(refused("0.json", R"({"schema": "1.0.4-chakra.0.0.4", "nodes": [)"
                              R"({"id": 2, "name": "gloo:all_reduce", "ctrl_deps": 1}]})"),
            "0.json" + nothing + "; calls are taken from its record_param_comms, and it has none");
}

// A line of the Inspector: one collective in a communicator of two ranks.
std::string line(int rank, const std::string& version, const std::string& body) {
  return R"({"header": {"id": "0xa", "rank": )" + std::to_string(rank) +
         R"(, "n_ranks": 2, "nnodes": 1}, "metadata": {"inspector_output_format_version": ")" +
         version + R"(", "hostname": "h", "pid": )" + std::to_string(rank + 10) + "}, " + body +
         "}\n";
}
std::string call(const std::string& name, int number, std::uint64_t bytes, std::int64_t start,
                 std::int64_t stop) {
  const std::string times =
      start < 0
          ? ""
          : R"(, "event_trace_ts": {"kernel_events": [{"channel_id": 0, "kernel_start_ts": )" +
                std::to_string(start) + R"(, "kernel_stop_ts": )" + std::to_string(stop) + "}]}";
  return R"("coll_perf": {"coll": ")" + name + R"(", "coll_sn": )" + std::to_string(number) +
         R"(, "coll_msg_size_bytes": )" + std::to_string(bytes) + times + "}";
}

TEST_F(Formats, InspectorMakesDelaysOfWhatLiesBetweenKernels) {
  for (const int rank : {0, 1})
    folder.write("h-" + std::to_string(rank) + ".log",
                 line(rank, "v4.2", call("AllReduce", 1, 17179869184, 100, 110)) +
                     line(rank, "v4.2", call("AllGather", 1, 32, 130, 150)) +
                     line(rank, "v4.2", call("ReduceScatter", 1, 16, 140, 160)));
  const Trace trace = import_trace({folder.path("h-*.log")}, "", 0);
  EXPECT_EQ(trace.used, 6U);
  EXPECT_EQ(
      program_of(replay(trace, {}).workload, 0),
      "compute:\nwait 0\ncompute 20000000 between calls\nrecord 1\ncompute 10000000 between "
      "calls\nrecord 1\n"
      "0xa:\nallreduce 0xa uint8 17179869184 AllReduce\nrecord 0\nwait 1\nall_gather 0xa uint8 32 "
      "AllGather\n"
      "wait 1\nreduce_scatter 0xa uint8 16 ReduceScatter\n");
}

// The kernels of a group start together; the line of the call whose kernel ends first comes first.
TEST_F(Formats, InspectorKeepsTheOrderOfCallsWhoseKernelsStartTogether) {
  const auto grouped = [](const std::string& name, int number, int bytes, int enqueued, int stop) {
    std::string text = call(name, number, bytes, 100, stop);
    const std::string_view times = R"("event_trace_ts": {)";
    return text.insert(text.find(times) + times.size(),
                       R"("coll_start_ts": )" + std::to_string(enqueued) + ", ");
  };
  const std::string head = "compute:\n0xa:\n";
  const auto play = [&](const std::string& first, const std::string& second) {
    folder.write("h-0.log", line(0, "v4.2", first) + line(0, "v4.2", second));
    folder.write("h-1.log", line(1, "v4.2", second) + line(1, "v4.2", first));
    return program_of(replay(import_trace({folder.path("h-*.log")}, "", 0), {}).workload, 0);
  };
  // The number tells calls of one kind apart.
  EXPECT_EQ(play(grouped("AllReduce", 1, 8, 90, 110), grouped("AllReduce", 0, 4, 90, 111)),
            head + "allreduce 0xa uint8 4 AllReduce\nallreduce 0xa uint8 8 AllReduce\n");
  EXPECT_EQ(play(grouped("AllReduce", 0, 8, 91, 110), grouped("ReduceScatter", 0, 4, 90, 111)),
            head + "reduce_scatter 0xa uint8 4 ReduceScatter\nallreduce 0xa uint8 8 AllReduce\n");
}

TEST_F(Formats, InspectorRefusesTimesOfNoOneRun) {
  constexpr std::int64_t kNow = 1'700'000'000'000'000;
  const std::string error =
      "h-0.log:2:1: times of kernels that are more than 11 days apart; times are microseconds";
  const std::string first = line(0, "v4.2", call("AllReduce", 1, 64, 1, 2));
  EXPECT_EQ(refused("h-0.log", first + line(0, "v4.2", call("AllReduce", 2, 64, kNow, kNow + 1))),
            error);
  EXPECT_EQ(refused("h-0.log", first + line(0, "v4.2", call("AllReduce", 2, 64, 3, kNow))), error);
}

TEST_F(Formats, InspectorTakesTheHeaderOfTheDumpBefore) {
  for (const int rank : {0, 1})
    folder.write(
        "h-" + std::to_string(rank) + ".log",
        line(
            rank, rank == 0 ? "v4.3" : "v4.4",
            R"("dump_stats": {"coll_records": 2, "coll_dropped_total": 3, "p2p_dropped_total": 0})") +
            "{" + call("AllReduce", 1, 64, -1, -1) + "}\n{" +
            call("AllReduce", rank + 2, 64, -1, -1) + "}\n" +
            R"({"proxy_trace": {"record_type": "proxy_op_segment", "steps": [{"step": 0}]}})" +
            "\n");
  const Trace trace = import_trace({folder.path("h-*.log")}, "", 0);
  EXPECT_EQ(trace.left_out, (Counts64{{"calls that other members of the communicator lack", 2},
                                      {"operations that the plugin dropped", 6},
                                      {"records of proxy steps and operations", 2}}));
  EXPECT_EQ(program_of(replay(trace, {}).workload, 1),
            "compute:\n0xa:\nallreduce 0xa uint8 64 AllReduce\n");
  EXPECT_EQ(
      refused("h-0.log", line(0, "v4.3", R"("dump_stats": {"coll_dropped_total": 3})")),
      "h-0.log:1:1: there are no collectives, sends or receives in it; were all of them below "
      "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES?");
  EXPECT_EQ(refused("h-0.log", "{" + call("AllReduce", 1, 64, -1, -1) + "}\n"),
            "h-0.log:1:1: a record before any header: v4.3 has it in the dump_stats line before");
}

// A log may be cut off within its last line, because its process was killed.
TEST_F(Formats, InspectorMayBreakOff) {
  const std::string whole = line(0, "v4.2", call("AllReduce", 1, 64, -1, -1));
  folder.write("h-0.log", whole + whole.substr(0, whole.size() / 2));
  const Trace trace = import_trace({folder.path("h-0.log")}, "", 0);
  EXPECT_EQ(trace.used, 1U);
  EXPECT_EQ(trace.left_out, (Counts64{{"lines that break off", 1}}));
  EXPECT_EQ(refused("h-0.log", whole.substr(0, 40) + "\n" + whole).substr(0, 10), "h-0.log:1:");
}

// Rank 0's ring has dropped its first send, or its process was killed before the last one.
TEST_F(Formats, InspectorLeavesOutMessagesThatTheOtherEndLacks) {
  for (const std::uint64_t lost : {0, 2}) {
    for (const int rank : {0, 1}) {
      std::string text;
      for (std::uint64_t number = 0; number < 3; ++number) {
        if (rank == 0 && number == lost) continue;
        text += line(rank, "v4.1",
                     std::string(R"("p2p_perf": {"p2p": ")") + (rank == 0 ? "Send" : "Recv") +
                         R"(", "p2p_sn": )" + std::to_string(number) + R"(, "p2p_peer": )" +
                         std::to_string(1 - rank) + R"(, "p2p_msg_size_bytes": )" +
                         std::to_string(10'000 * (number + 1)) + "}");
      }
      folder.write("h-" + std::to_string(rank) + ".log", text);
    }
    const Trace trace = import_trace({folder.path("h-*.log")}, "", 0);
    EXPECT_EQ(trace.left_out, (Counts64{{"sends and receives that the other end lacks", 1}}));
    const TraceSummary found = summary_of(trace, 2);
    EXPECT_EQ(found.stated.at("recv"), lost == 0 ? 50'000U : 30'000U);
    EXPECT_EQ(found.stated.at("send"), found.stated.at("recv"));
    EXPECT_EQ(replay(trace, {}).workload.ranks, 2);
  }
}

TEST_F(Formats, ParamCountsMessagesApartFromCollectives) {
  const auto program = [&](const std::string& message) {
    for (const int rank : {0, 1}) {
      const std::string rest = R"("pg_id": 0, "world_size": 2, "dtype": "float", "in_msg_size": 8,
                                  "out_msg_size": 8})",
                        number = R"("req": [)" + message + R"(, true], "src_rank": 0, )";
      folder.write(std::to_string(rank) + ".json",
                   R"([{"comms": "all_reduce", "req": [1, false], )" + rest + R"(, {"comms": ")" +
                       (rank == 0 ? "isend" : "irecv") + R"(", "dst_rank": 1, )" + number + rest +
                       R"(, {"comms": "wait", )" + number + R"("pg_id": 0}])");
    }
    const Trace trace = import_trace({folder.path("0.json"), folder.path("1.json")}, "", 0);
    EXPECT_EQ(trace.left_out, Counts64{});
    return program_of(replay(trace, {}).workload, 0);
  };
  EXPECT_EQ(program("1"), program("2"));
  EXPECT_NE(program("1").find("wait"), std::string::npos) << "the send follows the all-reduce";
}

TEST_F(Formats, ParamMatchesMessagesWithinTheirGroup) {
  for (const int rank : {0, 1}) {
    std::string groups, calls;
    for (const int group : {1, 2}) {
      groups += R"({"comms": "init", "pg_id": )" + std::to_string(group) +
                R"(, "global_ranks": [0, 1], "world_size": 2}, )";
      const int at = rank == 0 ? group : 3 - group;  // rank 1 receives in the other order
      const std::string size = std::to_string(8 * at);
      calls += std::string(calls.empty() ? "" : ", ") + R"({"comms": ")" +
               (rank == 0 ? "isend" : "irecv") + R"(", "req": )" + std::to_string(group) +
               R"(, "use_batch": true, "pg_id": )" + std::to_string(at) +
               R"(, "src_rank": 0, "dst_rank": 1, "dtype": "byte", "in_msg_size": )" + size +
               R"(, "out_msg_size": )" + size + "}";
    }
    folder.write(std::to_string(rank) + ".json", "[" + groups + calls + "]");
  }
  const Workload played = test::played({folder.path("0.json"), folder.path("1.json")}).workload;
  check_workload(played);
  EXPECT_EQ(
      program_of(played, 0),
      "compute:\np2p 0:\nsend? p2p +1 uint8 8 isend\np2p 1:\nsend? p2p.1 +1 uint8 16 isend\n");
}

TEST_F(Formats, FoldersHaveRanksThatCallNothingAndOtherFormats) {
  for (const int rank : {0, 1})
    folder.write(std::to_string(rank) + ".json",
                 R"([{"comms": "barrier", "pg_id": 0, "global_ranks": [0, 1], "req": 1}])");
  folder.write("2.json", "[\n]\n");
  folder.write("log", "h:1:1 [0] NCCL INFO x");
  folder.write("notes.json", "{}");
  folder.write("old.goal", "num_ranks 1\n");
  const Trace trace = import_trace({folder.path("")}, "", 0);
  EXPECT_EQ(trace.given.size(), 3u);
  EXPECT_EQ(trace.notes.back(),
            "not read, for another format than param: log (nccl-log) and 1 more");
}

// What a row has and is not played.
TEST_F(Formats, RowsSayWhatIsLeftOutOfThem) {
  using Left = std::map<std::string, std::uint64_t>;
  const auto left = [&](const std::string& name, const std::string& text) {
    return import_trace({folder.write(name, text)}, "", 4).left_out;
  };
  EXPECT_EQ(left("w.txt", "MICRO\n1\na -1 1 ALLREDUCE 8 1 ALLREDUCE 0 1 ALLREDUCE 8 1\n"),
            (Left{{"collectives of activations, which MICRO does not play", 1}}));
}

TEST_F(Formats, GoalKeepsItsGraph) {
  const std::string file = folder.write("g.goal", R"(num_ranks 2
// two ranks
rank 0 {
a: calc 100
b: send 64b to 1 tag 3
c: calc 50 cpu 1
b requires a
c irequires b
}
rank 1 {
r: recv 64b from 0 tag 3 /* late */
}
)");
  const Workload workload = test::played({file}).workload;
  EXPECT_EQ(
      program_of(workload, 0),
      "compute:\ncompute 100000 calc\nrecord 0\nrecord 1\ncpu 1:\nwait 1\ncompute 50000 calc\n"
      "p2p 0:\nwait 0\nsend? p2p +1 uint8 64 send\n");
  EXPECT_EQ(refused("g.goal", "num_ranks 1\nrank 0 {\na: calc 5\nb requires a\n}\n"),
            "g.goal:4:3: label 'b' is not defined above in rank 0");
  EXPECT_EQ(refused("g.goal", "num_ranks 2\nrank 0 {\n recv 5b from -1\n}\n"),
            "g.goal:3:15: a receive from anybody: the text does not say from whom; name the rank");
  EXPECT_EQ(refused("g.goal", "num_ranks 1000000000\n"),
            "g.goal:1:11: the number of ranks: '1000000000' is no integer from 0 to 16777216");
}

TEST_F(Formats, UnknownFilesAndFormatsAreNamed) {
  EXPECT_TRUE(refused("x.bin", "nothing of this kind")
                  .starts_with("x.bin: the format is none that is known"));
  EXPECT_EQ(test::error_in(folder, [&] { import_trace({folder.path("absent")}, "", 0); }),
            "absent: cannot be read; check the path");
  const std::string unpack = ", and only single files packed by gzip are read; unpack it";
  EXPECT_EQ(refused("k.json.zst", "\x28\xb5\x2f\xfd..."), "k.json.zst: is packed by zstd" + unpack);
  EXPECT_EQ(refused("k.tar", std::string(257, 'a') + "ustar"), "k.tar: is packed by tar" + unpack);
  EXPECT_EQ(test::error_in(
                folder, [&] { import_trace({folder.write("k.zip", "PK\x03\x04")}, "kineto", 0); }),
            "k.zip: is packed by zip" + unpack);
  EXPECT_EQ(
      test::error_in(folder, [&] { import_trace({"/dev/null"}, "", 0); }),
      "/dev/null: is no regular file, and its beginning is read twice; write it to one first");
}

}  // namespace
}  // namespace ghostrank
