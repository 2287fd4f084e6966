// Kineto's text: the meaning of its events, alone and beside execution traces, and refusals.
#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "profiles/load/program_file.h"
#include "profiles/workload/workload_check.h"
#include "tests/trace/formats.h"

namespace ghostrank {
namespace {

using test::Formats;
using test::program_of;
using Counts64 = std::map<std::string, std::uint64_t>;

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
  EXPECT_EQ(refused("k.json",
                    R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 1,
                        "args": {"stream": "seven"}}]})"),
            "k.json:1:1: stream is no number");
  EXPECT_EQ(refused("k.json", cut), "k.json:1:" + std::to_string(cut.size() + 1) +
                                        ": the file ends too early; it is cut off");
}

TEST_F(Formats, TwoTracesOfOneRankAreRefusedByTheirNames) {
  const std::string text = "{\"traceEvents\": [" + kernel("a", 1, 1, 1) + "]}";
  const std::string first = folder.write("first.json", text);
  const std::string second = folder.write("second.json", text);
  EXPECT_EQ(test::error_in(folder,
                           [&] {
                             test::played({first, second});
                           }),
            "second.json: a second trace of rank 0, which first.json is of, too (by "
            "distributedInfo; without, by the files' names); each rank has one");
}

// Traces without distributedInfo.
TEST_F(Formats, KinetoTakesRanksFromNamesOfSeveralFiles) {
  const std::string text = "{\"traceEvents\": [" + kernel("a", 1, 1, 1) + "]}";
  folder.write("rank-2.Jul_15.pt.trace.json", text);
  folder.write("rank-1.Jul_15.pt.trace.json", text);
  const Trace trace = import_trace({folder.path("rank*.json")}, "", 0);
  ASSERT_EQ(trace.given.size(), 2U);
  EXPECT_EQ(trace.given[0].rank, WorldRank(1));
  EXPECT_EQ(trace.given[1].rank, WorldRank(2));
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

// Events list only the first members of a large group; distributedInfo has all.
TEST_F(Formats, KinetoTakesMembersThatEventsCutShort) {
  const auto trace_of = [](const std::string& group, const std::string& listed, int size) {
    return R"({"distributedInfo": {"rank": 1, "world_size": 4, "pg_config": [
                 {"pg_name": "7", "ranks": [1, 3]}, {"pg_name": "9", "ranks": "[1, 2, ...]"}]},
               "traceEvents": [)" +
           kernel("ncclDevKernel_AllReduce", 9, 1, 4,
                  R"(, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8,
                     "Out msg nelems": 8, "Process Group Name": ")" +
                      group + R"(", "Process Group Ranks": ")" + listed + R"(", "Group size": )" +
                      std::to_string(size)) +
           "]}";
  };
  const auto members = [&](const std::string& text) {
    std::string out;
    const Trace trace = import_trace({folder.write("k.json", text)}, "", 0);
    for (const WorldRank rank : trace.groups.at(0).members) out += to_string(rank) + " ";
    return out;
  };
  EXPECT_EQ(members(trace_of("7", "[1, ...]", 2)), "1 3 ");
  EXPECT_EQ(members(trace_of("0", "[0, 1, ...]", 4)), "0 1 2 3 ");  // the job
  const std::string before =
      "k.json:3:1: 'Process Group Ranks' is cut short, and the distributedInfo before the events "
      "does not have all ";
  const std::string advice = "; give the ranks' execution traces, too";
  EXPECT_EQ(refused("k.json", trace_of("8", "[1, ...]", 3)),
            before + "3 members of process group '8'" + advice);
  EXPECT_EQ(refused("k.json", trace_of("7", "[2, ...]", 2)),
            before + "2 members of process group '7'" + advice);
  EXPECT_EQ(refused("k.json", trace_of("9", "[1, 2, ...]", 3)),
            before + "3 members of process group '9'" + advice);
}

// The profiler starts while NCCL is at work: of a call that was launched before nothing is known.
TEST_F(Formats, KinetoLeavesOutCallsThatWereLaunchedBefore) {
  const auto trace_of = [](double start_of_unknown) {
    return R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [
                 {"ph": "X", "cat": "xpu_runtime", "name": "zeCommandListAppendLaunchKernel", "ts": 20, "dur": 1,
                  "args": {"correlation": 5}},)" +
           kernel("ncclDevKernel_Generic", 9, start_of_unknown, 4, R"(, "correlation": 3)") + "," +
           kernel("ncclDevKernel_Generic", 9, 30, 4,
                  R"(, "correlation": 5)" + std::string(kReduce)) +
           "]}";
  };
  const Trace trace = import_trace({folder.write("k.json", trace_of(10))}, "", 0);
  EXPECT_EQ(trace.used, 1u);
  EXPECT_EQ(trace.left_out,
            (Counts64{{"events that are none of the device's", 1},
                      {"kernels of NCCL that were launched before the trace began", 1}}));
  const Trace later = import_trace({folder.write("k.json", trace_of(40))}, "", 0);
  EXPECT_EQ(later.left_out, (Counts64{{"events that are none of the device's", 1}}));
  EXPECT_EQ(summary_of(later, 2).ops, (Counts64{{"allreduce", 1}, {"compute", 1}}));
}

// PyTorch before 2.3 gives NCCL's kernels no arguments, and other libraries call NCCL, too. No
// bytes are made up for them.
TEST_F(Formats, KinetoGivesKernelsOfUnknownCallsTheirTimeAlone) {
  const std::string trace =
      R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)" +
      kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 9, 10, 4) + "," + kernel("gemm", 7, 20, 3) +
      "," + kernel("ncclKernel_SendRecv", 9, 30, 5) + "]}";
  const std::vector<std::string> files{folder.write("k.json", trace)};
  const Trace read = import_trace(files, "", 0);
  EXPECT_EQ(summary_of(read, 2).ops, (Counts64{{"compute", 3}}));
  EXPECT_EQ(summary_of(read, 2).compute, (12 + 26) * kPicosPerMicro);  // kernels, idle streams
  EXPECT_EQ(std::ranges::count(read.notes,
                               "2 kernels of NCCL do not say which call they are ('Collective "
                               "name', of PyTorch from 2.3 on; the ranks' execution traces say it, "
                               "too): they take their time, but send nothing"),
            1);
  EXPECT_EQ(test::played(files).workload.ranks, 2);
}

TEST_F(Formats, TracksAreFoundByTheirNames) {
  TraceRank rank;
  rank.tracks = {"compute", "host"};
  EXPECT_EQ(track_named(rank, "stream 7"), 2);
  EXPECT_EQ(track_named(rank, "host"), 1);
  rank.tracks.emplace_back("memory");
  EXPECT_EQ(track_named(rank, "stream 9"), 4);
  EXPECT_EQ(track_named(rank, "memory"), 3);
  EXPECT_EQ(track_named(rank, "stream 7"), 2);
  EXPECT_EQ(rank.tracks.size(), 5u);
}

TEST_F(Formats, KinetoBoundsTheStreamsOfARank) {
  std::string events;
  for (int stream = 0; stream < 66'000; ++stream)
    events += (stream > 0 ? "," : "") + kernel("ncclKernel_SendRecv", stream, stream, 1);
  EXPECT_EQ(
      refused("k.json", R"({"distributedInfo": {"rank": 0}, "traceEvents": [)" + events + "]}"),
      "k.json: more than 65,535 threads and streams; is this one rank's trace?");
}

// Up to PyTorch 1.11 categories had other names.
TEST_F(Formats, KinetoReadsTheCategoriesOfOlderVersions) {
  const auto event = [](const std::string& category, double start) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": "x", "ts": )" +
           std::to_string(start) + R"(, "dur": 2, "args": {"stream": 7, "correlation": 3}},)";
  };
  const std::string trace = R"({"traceEvents": [)" + event("Runtime", 1) + event("Kernel", 10) +
                            event("Memcpy", 20) + event("Memset", 30) +
                            R"({"ph": "M", "name": "process_name", "ts": 0}]})";
  const Trace read = import_trace({folder.write("k.json", trace)}, "", 0);
  EXPECT_EQ(summary_of(read, 1).ops, (Counts64{{"compute", 3}}));
  EXPECT_EQ(read.left_out, (Counts64{{"events that are none of the device's", 2}}));
}

// What PyTorch's annotations of CUDA graphs add to a kernel: types by their names in Python, and
// lists that are no texts.
TEST_F(Formats, KinetoReadsAnnotationsOfGraphs) {
  const std::string trace =
      R"({"distributedInfo": {"rank": 1, "world_size": 4}, "traceEvents": [)" +
      kernel("ncclDevKernel_AllGather_RING_LL", 9, 10, 4,
             R"(, "Collective name": "_allgather_base", "dtype": "bfloat16", "In msg nelems": 8,
                "Out msg nelems": 16, "Group size": 2, "Process Group Name": "3",
                "Process Group Description": "tp", "Process Group Ranks": [1, 3], "Seq": 5,
                "Is asynchronized op": true)") +
      "]}";
  const Trace read = import_trace({folder.write("k.json", trace)}, "", 0);
  EXPECT_EQ(summary_of(read, 4).stated, (Counts64{{"all_gather", 16}}));
  ASSERT_EQ(read.groups.size(), 1U);
  EXPECT_EQ(read.groups[0].members, (std::vector{WorldRank(1), WorldRank(3)}));
}

// Up to PyTorch 2.0 neither the host's events nor the kernels have the numbers of the execution
// trace: the third call's kernel was launched within the third event.
TEST_F(Formats, KinetoJoinsExecutionTracesByOrder) {
  const auto node = [](int record, const std::string& inputs) {
    return R"({"id": )" + std::to_string(record + 100) + R"(, "rf_id": )" + std::to_string(record) +
           R"(, "name": "record_param_comms", "inputs": [)" + inputs + "]}";
  };
  const auto event = [](const std::string& category, const std::string& name, double at,
                        const std::string& args) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
           R"(", "tid": 5, "ts": )" + std::to_string(at) + R"(, "dur": 10, "args": {)" + args +
           "}},";
  };
  const auto host = [&](double at, int external) {
    return event("cpu_op", "record_param_comms", at,
                 R"("External id": )" + std::to_string(external));
  };
  const std::string calls =
      node(7, R"([[1, 2, 0, 6, 4, "cuda:0"]], 1, 94594108284448, 0, "allreduce", [], [])") + "," +
      node(8, R"(1, 0, 0, "wait", [], [])") + "," +
      node(9, R"([[1, 2, 0, 5, 2, "cuda:0"]], 2, 94594108284448, 0, "broadcast", [], [])");
  const std::string graph =
      folder.write("graph.json", R"({"schema": "1.0.1", "nodes": [)" + calls + "]}");
  const auto trace_of = [&](const std::string& hosts) {
    return folder.write(
        "k.json",
        R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)" + hosts +
            event("cuda_runtime", "cudaLaunchKernel", 5, R"("correlation": 11)") +
            event("cuda_runtime", "cudaLaunchKernel", 65, R"("correlation": 12)") +
            kernel("ncclKernel_AllReduce", 9, 10, 4, R"(, "External id": 11, "correlation": 11)") +
            "," +
            kernel("ncclKernel_Broadcast", 9, 70, 4, R"(, "External id": 12, "correlation": 12)") +
            "]}");
  };
  const std::string whole = trace_of(host(1, 11) + host(30, 20) + host(60, 21));
  const Trace trace = import_trace({whole, graph}, "", 0);
  EXPECT_EQ(summary_of(trace, 2).stated, (Counts64{{"allreduce", 24}, {"broadcast", 10}}));
  EXPECT_EQ(test::error_in(folder,
                           [&] {
                             import_trace({trace_of(host(1, 11) + host(60, 21)), graph}, "", 0);
                           }),
            "k.json: the host recorded 2 calls and waits, but there are 3 in graph.json; record "
            "both over the same steps");
}

// Kernels of another library are their call, several one; beside NCCL's they are a computation.
TEST_F(Formats, KinetoTakesCallsOfOtherLibraries) {
  const auto of = [](int external) {
    return R"(, "External id": )" + std::to_string(external) + kReduce;
  };
  const std::string file = folder.write(
      "k.json", R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)" +
                    kernel("checkForNaN", 9, 1, 2, of(4)) + "," +
                    kernel("ncclDevKernel_AllReduce", 9, 3, 4, of(4)) + "," +
                    kernel("oneccl_first", 9, 10, 2, of(5)) + "," +
                    kernel("oneccl_second", 9, 12, 2, of(5)) + "," + kernel("adam", 9, 20, 2) +
                    "]}");
  const Trace trace = import_trace({file}, "", 0);
  EXPECT_EQ(trace.used, 5u);
  EXPECT_EQ(summary_of(trace, 2).ops, (Counts64{{"allreduce", 2}, {"compute", 2}}));
  EXPECT_EQ(program_of(replay(trace, {}).workload, 0),
            "stream 9:\ncompute 2000000 checkForNaN\nrecord 0\nwait 1\n"
            "compute 6000000 idle\ncompute 2000000 adam\n"
            "group:\nwait 0\nallreduce group bfloat16 8 ncclDevKernel_AllReduce\n"
            "allreduce group bfloat16 8 oneccl_first\nrecord 1\n");
}

TEST_F(Formats, KinetoTakesCallsThatRcclPlaysByMsccl) {
  const std::string file = folder.write(
      "k.json", R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)" +
                    kernel("mscclKernel_Sum_half_Simple_false", 9, 1, 4, kReduce) + "]}");
  EXPECT_EQ(summary_of(import_trace({file}, "", 0), 2).ops, (Counts64{{"allreduce", 1}}));
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
  EXPECT_EQ(refusal({"k0.json", "k1.json"}), "");  // no calls are known
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
  folder.write("k0.json",
               trace_of(0, group(2)));  // the second and third kernels belong to no group
  EXPECT_EQ(summary_of(import_trace({folder.path("k0.json")}, "", 0), 2).ops.at("compute"), 2U);
}

}  // namespace
}  // namespace ghostrank
