// The text formats: the meaning of their rows, and refusals.
#include <algorithm>

#include <gtest/gtest.h>

#include "profiles/load/program_file.h"
#include "profiles/workload/workload_check.h"
#include "tests/trace/traces.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::Folder;
using test::program_of;
using Counts64 = std::map<std::string, std::uint64_t>;

class Formats : public testing::Test {
 protected:
  std::string refused(const std::string& name, const std::string& text) {
    folder.write(name, text);
    return test::error_in(folder, [&] { test::played({folder.path(name)}, 4); });
  }
  Folder folder;
};

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

const char* const kColumns =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
    "busbw,"
    "count\n";

TEST_F(Formats, AicbFollowsItsRowsAndSendsBetweenStages) {
  const std::string file = folder.write(
      "log.csv",
      "[rank0 ~ rank3]\n" + std::string(kColumns) +
          "CommType.all_reduce,CommGroup.tp_group,2,64,fwd,None,None,,None,None,None,1\n"
          "CommType.computation,CommGroup.None,None,\"(1,2)\",mlp,None,None,,0.5,None,None,1\n"
          "CommType.isend,CommGroup.pp_group,1,32,fwd,None,None,send_next,None,None,None,1\n"
          "CommType.irecv,CommGroup.pp_group,1,32,fwd,None,None,recv_prev,None,None,None,1\n"
          "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n");
  const Workload workload = test::played({file}).workload;
  EXPECT_EQ(workload.ranks, 4);
  EXPECT_EQ(
      program_of(workload, 2),
      "compute:\nwait 0\ncompute 500000000 mlp\nrecord 1\nrecord 2\n"
      "tp:\nallreduce tp uint8 64 fwd\nrecord 0\n"
      "p2p 0:\nwait 1\nsend? p2p +2 uint8 32 fwd\np2p 1:\nwait 2\nrecv? p2p +2 uint8 32 fwd\n");
  EXPECT_EQ(refused("log.csv", std::string(kColumns) + "CommType.x,CommGroup.all,4,1,,,,,,,,1\n"),
            "log.csv:2:1: 'CommType.x' is no call of AICB");
  EXPECT_EQ(refused("log.csv", std::string(kColumns) + "CommType.all_reduce,CommGroup.all,4,1\n"),
            "log.csv:2:1: 4 fields under a header of 12");
}

// Only the first and the last of three stages reduce the embedding, two ranks in each.
TEST_F(Formats, AicbMovesCommunicatorsAlongTheRanksOfASection) {
  const auto row = [](const std::string& call, const std::string& group, const std::string& more) {
    return "CommType." + call + ",CommGroup." + group + ",2,64,fwd,None,None," + more +
           ",None,None,None,1\n";
  };
  const std::string tp = row("all_reduce", "tp_group", ""),
                    send = row("isend", "pp_group", "send_next"),
                    receive = row("irecv", "pp_group", "recv_prev"),
                    embedding = row("all_reduce", "embedding_group", "");
  const std::string file = folder.write(
      "log.csv", std::string("[stage 0: rank0, rank1]\n") + kColumns + tp + send + embedding +
                     "[stage 1: rank2, rank3]\n" + kColumns + receive + tp + send +
                     "[stage 2: rank4, rank5]\n" + kColumns + receive + tp + embedding);
  const Workload workload = test::played({file}).workload;
  check_workload(workload);
  std::vector<std::vector<WorldRank>> found;
  for (const Group& group : workload.groups)
    if (workload.group_names[group.kind] == "embedding") found.push_back(group.members);
  EXPECT_EQ(found, (decltype(found){{WorldRank(0), WorldRank(4)}, {WorldRank(1), WorldRank(5)}}));
}

TEST_F(Formats, AicbRefusesMoreRanksThanATraceHas) {
  const auto size = [](const std::string& group, const std::string& ranks) {
    return "CommType.all_reduce,CommGroup." + group + "," + ranks + ",1,,,,,,,,1\n";
  };
  const std::string many = "16777216";
  EXPECT_EQ(refused("log.csv", std::string(kColumns) + size("tp_group", many) +
                                   size("ep_group", many) + size("ep_dp_group", many)),
            "log.csv:1:1: tp 16777216 times dp 281474976710656 are more than 16777216 ranks; "
            "correct comm_group_size");
  EXPECT_EQ(refused("log.csv", std::string(kColumns) + size("tp_group", "2") +
                                   size("dp_group", "2") + size("ep_group", many)),
            "log.csv:1:1: tp 2 times ep 16777216 are more than 16777216 ranks; correct "
            "comm_group_size");
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
            rank, "v4.3",
            R"("dump_stats": {"coll_records": 2, "coll_dropped_total": 3, "p2p_dropped_total": 0})") +
            "{" + call("AllReduce", 1, 64, -1, -1) + "}\n{" +
            call("AllReduce", rank + 2, 64, -1, -1) + "}\n" +
            R"({"proxy_trace": {"record_type": "proxy_step"}})" + "\n");
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

// A kernel on the device in Kineto's form; `more` are further args.
std::string kernel(const std::string& name, int stream, double start, double duration,
                   const std::string& more = "") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "ts": )" +
         std::to_string(start) + R"(, "dur": )" + std::to_string(duration) +
         R"(, "args": {"stream": )" + std::to_string(stream) + more + "}}";
}
const char* const kReduce =
    R"(, "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 8, "Out msg nelems": 8,
       "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]")";

// The backward runs on stream 7; the all-reduce of its first kernel's output runs beside the second
// kernel; the optimizer waits for the all-reduce.
TEST_F(Formats, KinetoRebuildsWhatStreamsWaitedFor) {
  for (const int rank : {0, 1})
    folder.write("k" + std::to_string(rank) + ".json",
                 R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
                     R"(, "world_size": 2}, "traceEvents": [
                 {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1},)" +
                     kernel("back1", 7, 100, 10) + "," + kernel("back2", 7, 110, 20) + "," +
                     kernel("ncclDevKernel_AllReduce", 9, 111, 40, kReduce) + "," +
                     kernel("adam", 7, 154, 5) + "]}");
  const Trace trace = import_trace({folder.path("k*.json")}, "", 0);
  EXPECT_EQ(trace.left_out, (Counts64{{"events that are none of the device's", 2}}));
  EXPECT_EQ(summary_of(trace, 2).ops, (Counts64{{"allreduce", 2}, {"compute", 6}}));
  EXPECT_EQ(program_of(replay(trace, {}).workload, 1),
            "stream 7:\ncompute 10000000 back1\nrecord 0\ncompute 20000000 back2\nwait 1\n"
            "compute 3000000 idle\ncompute 5000000 adam\n"
            "group:\nwait 0\nallreduce group bfloat16 8 ncclDevKernel_AllReduce\nrecord 1\n");
  EXPECT_EQ(refused("k.json", "{\"traceEvents\": [" + kernel("a", 1, 1, 1) +
                                  ",\n {\"cat\": \"kernel\", \"ts\": -5}]}"),
            "k.json:2:1: ts is no time in microseconds");
  const std::string cut = "{\"traceEvents\": [" + kernel("a", 1, 1, 1);
  EXPECT_EQ(refused("k.json", cut), "k.json:1:" + std::to_string(cut.size() + 1) +
                                        ": the file ends too early; it is cut off");
}

TEST_F(Formats, KinetoKeepsTheStreamsOfDevicesApart) {
  std::string events;
  for (const char* device : {"1", "3"}) {
    const std::string more = std::string(", \"device\": ") + device;
    events += (events.empty() ? "" : ",") + kernel("a", 7, 100, 10, more) + "," +
              kernel("b", 7, 110, 20, more);
  }
  EXPECT_EQ(
      program_of(
          test::played({folder.write("k.json", "{\"traceEvents\": [" + events + "]}")}, 1).workload,
          0),
      "stream 7:\ncompute 10000000 a\ncompute 20000000 b\n"
      "device 3 stream 7:\ncompute 10000000 a\ncompute 20000000 b\n");
}

// Microseconds since 1970 would not fit as picoseconds. The file need not be in order.
TEST_F(Formats, KinetoTakesTimesSince1970) {
  constexpr double kNow = 1'700'000'000'000'000;
  const std::string file =
      folder.write("k.json", "{\"traceEvents\": [" + kernel("late", 7, kNow + 15, 20) + "," +
                                 kernel("early", 7, kNow, 10) + "]}");
  EXPECT_EQ(program_of(test::played({file}, 1).workload, 0),
            "stream 7:\ncompute 10000000 early\ncompute 5000000 idle\ncompute 20000000 late\n");
  EXPECT_EQ(
      refused("k.json", "{\"traceEvents\": [" + kernel("a", 7, kNow, 10) + ",\n" +
                            kernel("b", 7, 5, 10) + "]}"),
      "k.json:1:1: a kernel ends over 11 days after the first one began; times are microseconds");
}

// Only the host's event names the root, and "External id" leads there from the kernel.
TEST_F(Formats, KinetoTakesRootsFromTheHost) {
  const auto trace_of = [&](const std::string& root) {
    for (const int rank : {0, 1}) {
      std::string call = R"("External id": 4)" + std::string(kReduce);
      call.replace(call.find("allreduce"), 9, "broadcast");
      folder.write("k" + std::to_string(rank) + ".json",
                   R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
                       R"(, "world_size": 2}, "traceEvents": [
                       {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1,
                        "args": {)" +
                       call + root + "}}," +
                       kernel("ncclDevKernel_Broadcast", 9, 111, 40, ", " + call) + "]}");
    }
    return import_trace({folder.path("k*.json")}, "", 0);
  };
  const auto program = [](const std::string& position) {
    return "compute:\ngroup:\nbroadcast group bfloat16 8" + position + " ncclDevKernel_Broadcast\n";
  };
  const std::string note = "2 calls have a root that the format does not name: member 0";
  const Trace named = trace_of(R"(, "Rank": 1)"), unnamed = trace_of("");
  EXPECT_EQ(program_of(replay(named, {}).workload, 0), program("@1"));
  EXPECT_EQ(std::ranges::count(named.notes, note), 0);
  EXPECT_EQ(program_of(replay(unnamed, {}).workload, 0), program(""));
  EXPECT_EQ(std::ranges::count(unnamed.notes, note), 1);
}

// Two steps of the profiler, the second slower: a backward, an all-reduce after it, an optimizer.
// The second optimizer has no launch event: it belongs to the step of its stream's kernel before.
TEST_F(Formats, KinetoPlaysStepAfterStep) {
  const auto step = [](int number, double at, double length) {
    return R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" +
           std::to_string(number) + R"(", "ts": )" + std::to_string(at) + R"(, "dur": )" +
           std::to_string(length) + "}";
  };
  const auto launch = [](int correlation, double at) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": )" +
           std::to_string(at) + R"(, "dur": 1, "args": {"correlation": )" +
           std::to_string(correlation) + "}}";
  };
  const auto from = [](int correlation) {
    return ", \"correlation\": " + std::to_string(correlation);
  };
  const auto file = [&](int rank, double second) {
    return R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
           R"(, "world_size": 2}, "traceEvents": [)" + step(5, 10, 40) + "," +
           kernel("back", 7, 100, 10, from(1)) + "," + launch(1, 20) + "," +
           kernel("ncclDevKernel_AllReduce", 9, 110, 40, kReduce + from(2)) + "," + launch(2, 21) +
           "," + kernel("adam", 7, 154, 5, from(3)) + "," + launch(3, 22) + "," + step(6, 50, 80) +
           "," + kernel("back", 7, 163, second, from(4)) + "," + launch(4, 55) + "," +
           kernel("ncclDevKernel_AllReduce", 9, 163 + second, 40, kReduce + from(5)) + "," +
           launch(5, 56) + "," + kernel("adam", 7, 210 + second, 6) + "]}";
  };
  folder.write("k0.json", file(0, 30));
  folder.write("k1.json", file(1, 20));
  const Trace trace = import_trace({folder.path("k*.json")}, "", 0);
  EXPECT_EQ(trace.steps, 2u);
  EXPECT_EQ(trace.used, 16U);  // six kernels and two steps a rank
  EXPECT_EQ(trace.left_out, (Counts64{{"events that are none of the device's", 10}}));
  EXPECT_NE(trace.notes.back().find("in the median 60 us long on the host; 2 are"),
            std::string::npos)
      << trace.notes.back();
  const Workload workload = replay(trace, {}).workload;
  EXPECT_EQ(workload.order, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(workload.cycle, 2u);
  ASSERT_EQ(workload.roles.size(), 2u);
  EXPECT_EQ(program_of(workload, 0, 0),
            "stream 7:\ncompute 10000000 back\nrecord 0\nwait 1\ncompute 4000000 idle\n"
            "compute 5000000 adam\n"
            "group:\nwait 0\nallreduce group bfloat16 8 ncclDevKernel_AllReduce\nrecord 1\n");
  // 4 us between the steps, and 7 us from the all-reduce to the optimizer.
  EXPECT_EQ(program_of(workload, 1, 1),
            "stream 7:\ncompute 4000000 idle\ncompute 20000000 back\nrecord 0\nwait 1\n"
            "compute 7000000 idle\ncompute 6000000 adam\n"
            "group:\nwait 0\nallreduce group bfloat16 8 ncclDevKernel_AllReduce\nrecord 1\n");
  check_workload(workload);

  // Programs as a profile keep their order.
  const auto written = program_profile(workload, {});
  const auto source = std::make_shared<Source>(Source{"p", "p", true});
  EXPECT_EQ(read_program(*parse_yaml(written, source).find("program")).order, workload.order);

  // Rank 1 launches its second all-reduce a step early.
  std::string other = file(1, 20);
  const std::string late = launch(5, 56);
  other.replace(other.find(late), late.size(), launch(5, 49));
  EXPECT_EQ(test::error_in(folder,
                           [&] {
                             folder.write("k1.json", other);
                             replay(import_trace({folder.path("k*.json")}, "", 0), {});
                           }),
            "k1.json:2:1: this is of step 1 of its file, but k0.json:2:1, the same call or "
            "message, of step 2; give the traces of the same steps");
}

// Before 2.3, PyTorch writes kernels without the arguments of their calls; an event of the host
// leads from a kernel to its call. In rank 1's file these events follow the kernels.
TEST_F(Formats, KinetoTakesItsCallsFromTheExecutionTraceBesideIt) {
  const auto host = [](int external, int record) {
    return R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "args": {"External id": )" +
           std::to_string(external) + R"(, "Record function id": )" + std::to_string(record) + "}}";
  };
  const auto gather = kernel("ncclKernel_AllGather", 9, 111, 40, R"(, "External id": 12)");
  const auto tokens = kernel("ncclKernel_SendRecv", 9, 200, 10, R"(, "External id": 11)");
  for (const int rank : {0, 1}) {
    const std::string at = std::to_string(rank), events = host(11, 7) + "," + host(12, 8),
                      kernels = kernel("back1", 7, 100, 10) + "," + gather + "," + tokens;
    folder.write("k" + at + ".json",
                 R"({"distributedInfo": {"rank": )" + at +
                     R"(, "world_size": 2}, "traceEvents": [)" +
                     (rank == 0 ? events + "," + kernels : kernels + "," + events) + "]}");
    const auto node = [&](int id, int record, const std::string& call, const std::string& splits) {
      return R"({"id": )" + std::to_string(id) + R"(, "name": "record_param_comms", "ctrl_deps": 1,
               "inputs": {"values": [[[1, 1, 0, 16, 2, "cuda:0"]], )" +
             std::to_string(id) + R"(, ["0", "default_pg"], )" + at + ", \"" + call + "\", " +
             splits + ", [], 0, 1, 2]}, " +
             R"("outputs": {"values": [[[1, 1, 0, 16, 2, "cuda:0"]]]},
               "attrs": [{"name": "rf_id", "type": "uint64", "value": )" +
             std::to_string(record) + "}]}";
    };
    folder.write("et_rank" + at + ".json", R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [)" +
                                               node(2, 7, "all_to_all", "[3, 1]") + "," +
                                               node(3, 8, "_allgather_base", "[]") + "," +
                                               node(4, 9, "barrier", "[]") + "]}");
  }
  const Trace trace = import_trace({folder.path("")}, "", 0);  // a folder with both
  EXPECT_EQ(trace.format, "kineto");
  EXPECT_EQ(trace.used, 10U);  // three kernels and two calls a rank
  EXPECT_EQ(trace.left_out, (Counts64{{"events that are none of the device's", 4},
                                      {"calls of an execution trace without a kernel", 2}}));
  EXPECT_EQ(program_of(replay(trace, {}).workload, 1),
            "stream 7:\ncompute 10000000 back1\nrecord 0\n"
            "group:\nwait 0\nall_gather group bfloat16 16 ncclKernel_AllGather\n"
            "all_to_all_v group bfloat16 #0 ncclKernel_SendRecv\n");
  const auto refusal = [&](const std::vector<std::string>& files) {
    return error_in(folder, [&] {
      std::vector<std::string> paths;
      for (const std::string& file : files) paths.push_back(folder.path(file));
      import_trace(paths, "", 0);
    });
  };
  EXPECT_EQ(refusal({"k0.json", "k1.json"}),
            "k0.json:1:1: a kernel of NCCL without 'Collective name'; record with a PyTorch from "
            "2.3 on, or give the ranks' execution traces, too");
  EXPECT_EQ(refusal({"k0.json", "k1.json", "et_rank0.json"}),
            "k1.json: there is no execution trace of rank 1; name it ...rank1...json");
  folder.write("k0.json",
               "{\"traceEvents\": [" + kernel("back1", 7, 100, 10) + ",\n" + gather + "]}");
  EXPECT_EQ(refusal({"et_rank0.json", "k0.json"}),
            "k0.json:2:1: no event of the host leads from this kernel of NCCL to a call ('External "
            "id', 'Record function id')");
  folder.write("k0.json", "{\"traceEvents\": [" + host(12, 99) + ",\n" + gather + "]}");
  EXPECT_EQ(refusal({"et_rank0.json", "k0.json"}),
            "k0.json:2:1: call 99 of this kernel is not in et_rank0.json");
}

// The thread 5 sends and receives in one group, for which the host launches two kernels; a call
// with a kernel of its own, one of a group before and one of another thread do not belong to it.
TEST_F(Formats, KinetoFindsTheCallsOfAGroupOnTheHost) {
  const auto range = [](const std::string& category, const std::string& name, int thread, int start,
                        int duration, const std::string& args) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "tid": )" +
           std::to_string(thread) + R"(, "ts": )" + std::to_string(start) + R"(, "dur": )" +
           std::to_string(duration) + R"(, "args": {)" + args + "}},\n";
  };
  const auto group = [&](int start) {
    return range("user_annotation", "nccl:coalesced", 5, start, 9, "");
  };
  const auto launch = [&](int at, int correlation) {
    return range("cuda_runtime", "cudaLaunchKernelExC", 5, at, 1,
                 R"("correlation": )" + std::to_string(correlation));
  };
  const auto trace_of = [&](int rank, const std::string& groups) {
    const auto host = [&](int external, int thread, int start, const std::string& call,
                          const std::string& type = "Float") {
      return range("cpu_op", "record_param_comms", thread, start, 1,
                   R"("External id": )" + std::to_string(external) + R"(, "Collective name": ")" +
                       call + R"(", "dtype": ")" + type +
                       R"(", "In msg nelems": 6, "Out msg nelems": 6,)"
                       R"( "Group size": 2, "Process Group Name": "0",)"
                       R"( "Process Group Ranks": "[0, 1]", "Dst Rank": )" +
                       std::to_string(1 - rank) + R"(, "Src Rank": )" + std::to_string(1 - rank));
    };
    return R"({"distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 2}, )" +
           "\"traceEvents\": [" + host(1, 5, 1, "allreduce_coalesced") + groups +
           host(2, 5, 20, "allreduce") + host(3, 5, 21, "send") + host(4, 5, 22, "recv") +
           host(5, 6, 23, "allreduce", "Another") + host(6, 5, 24, "wait") + launch(3, 1) +
           launch(31, 2) + launch(32, 3) +
           kernel("ncclDevKernel_A", 7, 100, 10, R"(, "correlation": 1)") + ",\n" +
           kernel("ncclDevKernel_A", 7, 120, 10, R"(, "External id": 2)" + std::string(kReduce)) +
           ",\n" + kernel("ncclDevKernel_S", 7, 140, 10, R"(, "correlation": 2)") + ",\n" +
           kernel("ncclDevKernel_S", 7, 160, 10, R"(, "correlation": 3)") + "]}";
  };
  for (const int rank : {0, 1})
    folder.write("k" + std::to_string(rank) + ".json", trace_of(rank, group(2) + group(30)));
  const Trace trace = import_trace({folder.path("k*.json")}, "", 0);
  EXPECT_EQ(summary_of(trace, 2).ops, (Counts64{{"allreduce", 4}, {"recv", 2}, {"send", 2}}));
  EXPECT_EQ(program_of(replay(trace, {}).workload, 0),
            "stream 7:\ngroup:\n"
            "allreduce group float32 6 ncclDevKernel_A\n"
            "allreduce group bfloat16 8 ncclDevKernel_A\nrecord 0\nrecord 1\n"
            "p2p 0:\nwait 0\nsend? p2p +1 float32 6 ncclDevKernel_S\n"
            "p2p 1:\nwait 1\nrecv? p2p +1 float32 6 ncclDevKernel_S\n");
  EXPECT_EQ(std::ranges::count_if(trace.notes,
                                  [](const std::string& note) {
                                    return note.starts_with("coalesced collectives are one call");
                                  }),
            1);
  folder.write("k0.json", trace_of(0, group(2)));  // the second kernel belongs to no group
  EXPECT_NE(error_in(folder, [&] { import_trace({folder.path("k0.json")}, "", 0); })
                .find("a kernel of NCCL without 'Collective name'"),
            std::string::npos);
}

TEST_F(Formats, ExecutionTracesGiveTheirCallsByPosition) {
  for (const int rank : {0, 1}) {
    const std::string pg = R"(["0", "default_pg"])", at = std::to_string(rank);
    const auto node = [&](int id, const std::string& values) {
      return R"({"id": )" + std::to_string(id) +
             R"(, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {"values": )" + values +
             R"(}, "outputs": {"values": [[[1, 1, 0, 32, 2, "cuda:0"]]]}})";
    };
    folder.write(
        "et_rank" + at + ".json",
        R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [{"id": 1, "name": "aten::mm", "ctrl_deps": 1},)" +
            node(2, R"([[[1, 1, 0, 16, 2, "cuda:0"]], 5, )" + pg + ", " + at +
                        R"(, "_allgather_base", [], [], 0, 1, 2])") +
            "," +
            node(3, R"([[[1, 1, 0, 16, 2, "cuda:0"]], [6, false], )" + pg +
                        R"(, 1, "broadcast", [], [], 0, 1, 2])") +
            "," + node(4, "[5, " + pg + R"(, 0, "wait", [], []])") + "]}");
  }
  const Trace trace = import_trace({folder.path("et_*.json")}, "", 0);
  EXPECT_EQ(trace.used, 6U);
  EXPECT_EQ(trace.left_out,
            (Counts64{{"nodes that are no collectives: the trace has no times of devices", 2}}));
  EXPECT_EQ(program_of(replay(trace, {}).workload, 0),
            "compute:\ngroup:\nall_gather group bfloat16 16 _allgather_base\nbroadcast group "
            "bfloat16 16@1 broadcast\n");
}

// Messages and collectives count apart: [1, true] is another call than [1, false]. So the program
// is that of a trace in which no number comes twice.
TEST_F(Formats, ExecutionTracesCountMessagesApartFromCollectives) {
  const auto program = [&](const std::string& message) {
    for (const int rank : {0, 1}) {
      const auto node = [&](int id, const std::string& before, const std::string& rest) {
        return R"({"id": )" + std::to_string(id) + R"(, "name": "record_param_comms", )" +
               R"("ctrl_deps": 1, "inputs": {"values": [)" + before + R"(["0", "default_pg"], )" +
               rest + R"(]}, "outputs": {"values": []}})";
      };
      const std::string tensor = R"([[1, 1, 0, 16, 2, "cuda:0"]], )";
      const std::string number = "[" + message + ", true], ";
      folder.write("et_rank" + std::to_string(rank) + ".json",
                   R"({"schema": "1.1.1-chakra.0.0.4", "nodes": [)" +
                       node(1, tensor + "[1, false], ",
                            std::to_string(rank) + R"(, "allreduce", [], [], 0, 1, 2)") +
                       "," +
                       node(2, tensor + number,
                            std::to_string(1 - rank) + (rank == 0 ? R"(, "send")" : R"(, "recv")") +
                                ", [], [], 0, 1, 2") +
                       "," + node(3, number, R"(0, "wait", [], [], -1, -1, 1)") + "]}");
    }
    const Trace trace = import_trace({folder.path("et_*.json")}, "", 0);
    EXPECT_EQ(trace.left_out, Counts64{});
    return program_of(replay(trace, {}).workload, 0);
  };
  EXPECT_EQ(program("1"), program("2"));
  EXPECT_NE(program("1").find("wait"), std::string::npos) << "the send follows the all-reduce";
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

TEST_F(Formats, ExecutionTracesRefuseRanksFarApart) {
  const auto stride = [&](const std::string& values) {
    return refused("et_rank0.json",
                   R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [
                      {"id": 2, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {"values":
                       [[[1, 1, 0, 16, 2, "cuda:0"]], 5, ["1", ""], 0, "allreduce", [], [], )" +
                       values + R"(]}, "outputs": {"values": []}}]})");
  };
  for (const std::string far : {"4611686020574871552", "8388608"})
    EXPECT_EQ(stride("0, " + far + ", 3"),
              "et_rank0.json: node 2: a process group of 3 ranks from 0, stride " + far);
  EXPECT_EQ(stride("1, 8388607, 3"),
            "et_rank0.json: the trace names 16777216 ranks, but there are to be 4; they must be as "
            "many");
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
}

}  // namespace
}  // namespace ghostrank
