// Formats that only name calls: NCCL's log, PyTorch's Flight Recorder, and GOAL in binary form.
#include <gtest/gtest.h>

#include "profiles/workload/workload_check.h"
#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

using test::Folder;
using test::program_of;

class CallReaders : public testing::Test {
 protected:
  std::string refused(const std::string& name, const std::string& text) {
    folder.write(name, text);
    return test::error_in(folder, [&] { test::played({folder.path(name)}, 2); });
  }
  Folder folder;
};

std::string log_line(int pid, const std::string& text) {
  return "h:" + std::to_string(pid) + ":9 [0] NCCL INFO " + text + "\n";
}
std::string log_init(int pid, const std::string& comm, int rank, int ranks, const std::string& id) {
  return log_line(pid, "comm " + comm + " rank " + std::to_string(rank) + " nranks " +
                           std::to_string(ranks) + " cudaDev 0 commId " + id + " - Init COMPLETE");
}
std::string log_call(int pid, const std::string& name, int count, const std::string& comm,
                     int root = 0) {
  return log_line(pid, name + ": opCount 1f sendbuff 0x7f recvbuff 0x7f count " +
                           std::to_string(count) + " datatype 7 op 0 root " + std::to_string(root) +
                           " comm " + comm + " [nranks=2] stream 0x1");
}

TEST_F(CallReaders, ReadCallsOfNcclsLog) {
  std::string text = "not NCCL's\n" + log_line(10, "NET/IB : No device found.");
  for (const int pid : {10, 11}) text += log_init(pid, "0xa", pid - 10, 2, "0xc0ffee");
  for (const int pid : {10, 11})
    text += log_call(pid, "AllReduce", 1000, "0xa") + log_call(pid, "ReduceScatter", 500, "0xa") +
            log_call(pid, "Broadcast", 8, "0xa", 1);
  text += log_call(10, "Send", 4, "0xa", 1) + log_call(11, "Recv", 4, "0xa", 0);
  text += log_call(10, "Send", 4, "0xa", 0) + log_call(10, "Recv", 4, "0xa", 0);
  const std::string file = folder.write("nccl.log", text);
  const Trace trace = import_trace({file}, "", 0);
  EXPECT_EQ(trace.format, "nccl-log");
  EXPECT_EQ(trace.used, 10u);  // one communicator's two lines, eight calls
  EXPECT_EQ(trace.left_out.at("lines that are not NCCL's"), 1u);
  EXPECT_EQ(trace.left_out.at("sends and receives of a rank to itself"), 2u);
  EXPECT_EQ(trace.left_out.at("lines of NCCL without a call or a communicator"), 1u);
  const TraceSummary found = summary_of(trace, 2);
  EXPECT_EQ(found.ops.at("allreduce"), 2u);
  EXPECT_EQ(found.stated.at("allreduce"), 8000u);
  EXPECT_EQ(found.in.at("reduce_scatter"), 8000u);  // the log has what a rank receives
  EXPECT_EQ(found.out.at("reduce_scatter"), 4000u);
  EXPECT_EQ(found.ops.at("send"), 1u);
  const std::string program = program_of(test::played({file}).workload, 0);
  EXPECT_NE(program.find("broadcast 0xc0ffee uint8 32@1 Broadcast"), std::string::npos) << program;
}

std::string log_split(int pid, int rank, int ranks, int color) {
  return log_line(pid, "ncclCommSplit comm 0xb rank " + std::to_string(rank) + " nranks " +
                           std::to_string(ranks) + " cudaDev 0 parent 0xa splitCount 1 color " +
                           std::to_string(color) + " key 0- Init COMPLETE");
}

// Of four processes each pair has the communicator that a split made of its color.
TEST_F(CallReaders, TellSplitsOfACommunicatorApart) {
  std::string text;
  for (const int pid : {10, 11, 12, 13}) {
    const int rank = pid - 10;
    text += log_init(pid, "0xa", rank, 4, "0xc0ffee") + log_split(pid, rank / 2, 2, rank % 2) +
            log_call(pid, "AllReduce", 100 * (1 + rank % 2), "0xb");
  }
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  ASSERT_EQ(trace.groups.size(), 3u);
  EXPECT_EQ(trace.groups[1].members, (std::vector<WorldRank>{WorldRank(0), WorldRank(2)}));
  EXPECT_EQ(trace.groups[2].members, (std::vector<WorldRank>{WorldRank(1), WorldRank(3)}));
  EXPECT_EQ(summary_of(trace, 4).ops.at("allreduce"), 4u);
}

TEST_F(CallReaders, LeaveOutTheEndsOfCommunicators) {
  std::string text;
  for (const int pid : {10, 11}) {
    text += log_init(pid, "0xa", pid - 10, 2, "0x1") + log_init(pid, "0xb", pid - 10, 2, "0x2") +
            log_call(pid, "AllReduce", 100, "0xb");
    for (const char* comm : {"0xb", "0xa"})
      text += log_line(pid, std::string("comm ") + comm + " rank " + std::to_string(pid - 10) +
                                " nranks 2 cudaDev 0 busId 60 - " +
                                (pid == 10 ? "Destroy" : "Abort") + " COMPLETE");
  }
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  EXPECT_EQ(trace.groups.size(), 2u);
  EXPECT_EQ(trace.used, 6u);
  EXPECT_EQ(trace.left_out.at("lines of NCCL without a call or a communicator"), 4u);
}

TEST_F(CallReaders, KeepProcessesOfALogWithTimestampsApart) {
  for (const std::string time : {"[2026-03-01 12:00:01] ", "2026-03-01 12:00:01 ", "12:00:01.5 "}) {
    std::string text;
    for (const int pid : {10, 11})
      text += time + log_init(pid, "0xa", pid - 10, 2, "0xc0ffee") + time +
              log_call(pid, "AllReduce", 100, "0xa");
    const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
    EXPECT_EQ(trace.given.size(), 2u) << time;
    EXPECT_EQ(summary_of(trace, 2).ops.at("allreduce"), 2u) << time;
  }
}

// A program prints a line's beginning, and NCCL goes on there; two processes share a line.
TEST_F(CallReaders, FindRecordsOfALogBehindOtherText) {
  std::string text;
  for (const int pid : {10, 11}) text += log_init(pid, "0xa", pid - 10, 2, "0xc0ffee");
  for (const int count : {100, 200}) {
    text += "   8388608   float   sum  -1" + log_call(10, "AllReduce", count, "0xa");
    text.pop_back();
    text += log_call(11, "AllReduce", count, "0xa");
  }
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  EXPECT_EQ(trace.given.size(), 2u);
  EXPECT_EQ(summary_of(trace, 2).ops.at("allreduce"), 4u);
  EXPECT_EQ(summary_of(trace, 2).stated.at("allreduce"), 2400u);
  EXPECT_TRUE(trace.left_out.empty());
}

TEST_F(CallReaders, TakeCallsOfALogBehindANumberInBrackets) {
  std::string text;
  for (const int pid : {10, 11})
    text += log_init(pid, "0xa", pid - 10, 2, "0xc0ffee") +
            log_call(pid, "[" + std::to_string(pid) + "] AllGather", 100, "0xa");
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  EXPECT_EQ(summary_of(trace, 2).out.at("all_gather"), 2u * 2 * 400);
}

// RCCL says the rank with each call, so that lines of INIT are not needed.
TEST_F(CallReaders, TakeRanksFromCallsOfRccl) {
  const auto call = [](int pid, const std::string& name, int count) {
    std::string line = log_call(pid, name, count, pid == 10 ? "0xa" : "0xb");
    line.pop_back();
    return line + " task 0 globalrank " + std::to_string(pid - 10) + "\n";
  };
  std::string text;
  for (const int pid : {10, 11})
    text += call(pid, "AllReduce", 100) + call(pid, "mscclFuncAllToAll", 8) +
            call(pid, "mscclpp_ncclAllReduce", 100) + call(pid, "AllToAllPivot", 8) +
            call(pid, "PutSignal", 1);
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  ASSERT_EQ(trace.given.size(), 2u);
  EXPECT_EQ(trace.given[1].rank, WorldRank(1));
  const TraceSummary found = summary_of(trace, 2);
  EXPECT_EQ(found.stated.at("allreduce"), 2u * 2 * 400);
  EXPECT_EQ(found.in.at("all_to_all"), 2u * 2 * 2 * 32);  // the log has what goes to a peer
  EXPECT_EQ(trace.left_out,
            (std::map<std::string, std::uint64_t>{{"calls that are not played: PutSignal", 2}}));
  EXPECT_EQ(refused("plain.log", log_call(10, "AllReduce", 100, "0xa")),
            "plain.log:1:1: communicator '0xa' has no line before that says its rank; log with "
            "NCCL_DEBUG_SUBSYS=INIT,COLL");
}

// Process 10 is rank 0 of the job, and rank 1 of the other communicator.
TEST_F(CallReaders, KeepTheOrderOfASecondCommunicatorOfAllRanks) {
  std::string text;
  for (const int pid : {10, 11})
    text += log_init(pid, "0xa", pid - 10, 2, "0x1") + log_init(pid, "0xb", 11 - pid, 2, "0x2");
  text += log_call(10, "Send", 4, "0xb", 0) + log_call(11, "Recv", 4, "0xb", 1);
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  ASSERT_EQ(trace.given.size(), 2u);
  EXPECT_EQ(trace.given[0].rank, WorldRank(0));
  EXPECT_EQ(trace.given[0].events.front().kind, TraceEvent::Kind::send);
  EXPECT_EQ(trace.given[0].events.front().peer, 1);
  EXPECT_EQ(trace.given[1].events.front().kind, TraceEvent::Kind::recv);
  EXPECT_EQ(trace.given[1].events.front().peer, 0);
}

TEST_F(CallReaders, PlayARankThatOnlyCopies) {
  const std::string text =
      log_init(10, "0xa", 0, 2, "0xc0ffee") + log_call(10, "Send", 4, "0xa", 0);
  const Trace trace = import_trace({folder.write("nccl.log", text)}, "", 0);
  ASSERT_EQ(trace.given.size(), 1u);
  EXPECT_TRUE(trace.given.front().events.empty());
  EXPECT_EQ(replay(trace, {2, {}}).workload.roles.size(), 1u);
}

TEST_F(CallReaders, RefuseLogsThatDoNotSayWhoARankIs) {
  EXPECT_EQ(refused("a.log", log_call(10, "AllReduce", 1, "0xa")),
            "a.log:1:1: communicator '0xa' has no line before that says its rank; log with "
            "NCCL_DEBUG_SUBSYS=INIT,COLL");
  EXPECT_EQ(refused("b.log", log_init(1, "0xa", 2, 2, "0x1")), "b.log:1:1: rank 2 of nranks 2");
  EXPECT_NE(refused("c.log", log_init(1, "0xa", 0, 2, "0x1") + log_init(2, "0xa", 0, 2, "0x1"))
                .find("is another process before"),
            std::string::npos);
  EXPECT_NE(refused("d.log", log_init(1, "0xa", 0, 2, "0x1") +
                                 log_line(1,
                                          "AllReduce: opCount 0 count 99999999999999999999 "
                                          "datatype 7 op 0 root 0 comm 0xa"))
                .find("d.log:2:1: count is no integer"),
            std::string::npos);
}

std::string entry(int sequence, const std::string& name, const std::string& in,
                  const std::string& out, const std::string& state = "completed", int record = 0,
                  const std::string& group = "0") {
  return R"({"record_id": )" + std::to_string(record) + R"(, "process_group": [")" + group +
         R"(", "a group"], "collective_seq_id": )" + std::to_string(sequence) +
         R"(, "profiling_name": "nccl:)" + name + R"(", "input_sizes": [)" + in +
         R"(], "input_dtypes": ["Float"], "output_sizes": [)" + out +
         R"(], "output_dtypes": ["Float"], "state": ")" + state + "\"}";
}
std::string dump(const std::string& entries) {
  return R"({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg",)"
         R"( "ranks": "[0, 1]"}}, "entries": [)" +
         entries + "]}";
}

TEST_F(CallReaders, ReadCallsOfTheFlightRecorder) {
  const std::string common = entry(7, "all_reduce", "[10, 100]", "[10, 100]") + "," +
                             entry(8, "_allgather_base", "[50]", "[100]");
  folder.write("fr_rank_0", dump(entry(6, "all_reduce", "[1]", "[1]") + "," + common + "," +
                                 entry(8, "send 0->1", "[4]", "[4]") + "," +
                                 entry(9, "all_reduce", "[1]", "[1]", "scheduled")));
  folder.write("fr_rank_1", dump(common + "," + entry(8, "recv 1<-0", "[4]", "[4]")));
  const std::vector<std::string> files{folder.path("fr_rank_0"), folder.path("fr_rank_1")};
  const Trace trace = import_trace(files, "", 0);
  EXPECT_EQ(trace.format, "flight-recorder");
  EXPECT_EQ(trace.used, 6u);
  EXPECT_EQ(trace.left_out.at("calls that other members of the process group lack"), 1u);
  EXPECT_EQ(trace.left_out.at("calls that had not completed"), 1u);
  const TraceSummary found = summary_of(trace, 2);
  EXPECT_EQ(found.stated.at("allreduce"), 8000u);
  EXPECT_EQ(found.out.at("all_gather"), 800u);
  EXPECT_EQ(found.ops.at("recv"), 1u);
  EXPECT_EQ(test::played(files).workload.ranks, 2);
}

TEST_F(CallReaders, NoteThatTheFlightRecorderNamesNoRoots) {
  for (const char* rank : {"0", "1"})
    folder.write(std::string("fr_rank_") + rank, dump(entry(1, "broadcast", "[4]", "[4]") + "," +
                                                      entry(2, "all_reduce", "[4]", "[4]")));
  const Trace trace = import_trace({folder.path("fr_rank_0"), folder.path("fr_rank_1")}, "", 0);
  EXPECT_EQ(trace.notes.back(), "2 calls have a root that the format does not name: member 0");
}

// The ring of a receiver has dropped its first entries, or its last receive had not completed.
TEST_F(CallReaders, LeaveOutMessagesThatOneEndLacks) {
  for (const bool wrapped : {true, false}) {
    std::string sends, receives;
    for (const int number : {1, 2, 3}) {
      const std::string size = "[" + std::to_string(number) + "]";
      sends += entry(number, "send 0->1", size, size) + ",";
      if (wrapped && number == 1) continue;
      const bool hangs = !wrapped && number == 3;
      receives += entry(number, "recv 1<-0", size, size, hangs ? "started" : "completed",
                        wrapped ? number : number - 1) +
                  ",";
    }
    const std::string last = entry(4, "all_reduce", "[1]", "[1]");
    folder.write("fr_rank_0", dump(sends + last));
    folder.write("fr_rank_1", dump(receives + last));
    const std::vector<std::string> files{folder.path("fr_rank_0"), folder.path("fr_rank_1")};
    const Trace trace = import_trace(files, "", 0);
    EXPECT_EQ(trace.left_out.at("sends and receives that the other end lacks"), 1u);
    EXPECT_EQ(trace.used, 6u);
    const TraceSummary found = summary_of(trace, 2);
    EXPECT_EQ(found.ops.at("send"), 2u);
    EXPECT_EQ(found.stated.at("send"), wrapped ? 20u : 12u);
    EXPECT_EQ(found.stated.at("recv"), found.stated.at("send"));
    EXPECT_EQ(test::played(files).workload.ranks, 2);
  }
}

// The ranks make the calls of two communicators in different orders, as on two streams.
TEST_F(CallReaders, MatchMessagesWithinTheirCommunicator) {
  std::string log;
  for (const int pid : {10, 11})
    log += log_init(pid, "0xa", pid - 10, 2, "0x1") + log_init(pid, "0xb", pid - 10, 2, "0x2");
  log += log_call(10, "Send", 8, "0xa", 1) + log_call(10, "Send", 4, "0xb", 1) +
         log_call(11, "Recv", 4, "0xb", 0) + log_call(11, "Recv", 8, "0xa", 0);
  const auto ring = [](const std::string& first, const std::string& then) {
    return dump(first + "," + then);
  };
  const std::string done = "completed";
  folder.write("fr_rank_0", ring(entry(1, "send 0->1", "[8]", "[8]", done, 0, "0"),
                                 entry(1, "send 0->1", "[4]", "[4]", done, 1, "1")));
  folder.write("fr_rank_1", ring(entry(1, "recv 1<-0", "[4]", "[4]", done, 0, "1"),
                                 entry(1, "recv 1<-0", "[8]", "[8]", done, 1, "0")));
  for (const auto& files : {std::vector{folder.write("nccl.log", log)},
                            std::vector{folder.path("fr_rank_0"), folder.path("fr_rank_1")}}) {
    const Trace trace = import_trace(files, "", 0);
    EXPECT_EQ(trace.left_out.count("sends and receives that the other end lacks"), 0u);
    const Workload played = replay(trace, {}).workload;
    check_workload(played);
    EXPECT_EQ(summary_of(trace, 2).stated.at("recv"), 48u);
  }
}

// PyTorch never completes the sends and receives of a batch, only their wrapper.
TEST_F(CallReaders, ReadBatchesOfTheFlightRecorderByTheirWrapper) {
  const auto batch = [](int sequence, const char* wrapper) {
    return entry(sequence, "send 0->1", "[4]", "[4]", "scheduled") + "," +
           entry(sequence, "recv 0<-1", "[6]", "[6]", "scheduled") + "," +
           entry(sequence, "coalesced", "", "", wrapper);
  };
  folder.write("fr_rank_0", dump(batch(1, "completed") + "," + batch(2, "started")));
  const Trace trace = import_trace({folder.path("fr_rank_0")}, "", 0);
  EXPECT_EQ(trace.used, 2u);
  EXPECT_EQ(trace.left_out.at("calls that had not completed"), 3u);
  EXPECT_EQ(trace.left_out.at("wrappers of coalesced calls"), 1u);
}

// The two ends of a batch send to each other: neither send may wait for the receive behind it.
TEST_F(CallReaders, StartBatchesOfTheFlightRecorderTogether) {
  for (const int rank : {0, 1}) {
    const std::string own = std::to_string(rank), other = std::to_string(1 - rank);
    std::string entries;
    for (const int sequence : {1, 2})
      entries += entry(sequence, "send " + own + "->" + other, "[4]", "[4]", "scheduled") + "," +
                 entry(sequence, "recv " + own + "<-" + other, "[4]", "[4]", "scheduled") + "," +
                 entry(sequence, "coalesced", "", "") + ",";
    folder.write("fr_rank_" + own, dump(entries + entry(3, "all_reduce", "[1]", "[1]")));
  }
  const std::vector<std::string> files{folder.path("fr_rank_0"), folder.path("fr_rank_1")};
  EXPECT_EQ(program_of(test::played(files).workload, 0),
            "compute:\n"
            "group:\nwait 0\nwait 1\nallreduce group float32 1 all_reduce\n"
            "p2p 0:\nsend? p2p +1 float32 4 send 0->1\nrecord 2\n"
            "wait 3\nsend? p2p +1 float32 4 send 0->1\nrecord 0\n"
            "p2p 1:\nrecv? p2p +1 float32 4 recv 0<-1\nrecord 3\n"
            "wait 2\nrecv? p2p +1 float32 4 recv 0<-1\nrecord 1\n");
}

TEST_F(CallReaders, MakeALaunchOfACoalescedCallOfTheFlightRecorder) {
  const auto coalesced = [](int sequence, const std::string& name, int of_input, int of_output) {
    const auto sizes = [](int factor) {
      return "[" + std::to_string(4 * factor) + "], [" + std::to_string(8 * factor) + "]";
    };
    return entry(sequence, name, sizes(of_input), sizes(of_output)) + "," +
           entry(sequence, "coalesced", "", "") + ",";
  };
  for (const int rank : {0, 1})
    folder.write("fr_rank_" + std::to_string(rank),
                 dump(coalesced(1, "allreduce_coalesced", 1, 1) +
                      coalesced(2, "all_gather_into_tensor_coalesced", 1, 2) +
                      coalesced(3, "reduce_scatter_tensor_coalesced", 2, 1) +
                      entry(4, "all_gather", "[6]", "[6], [6]")));
  const std::vector<std::string> files{folder.path("fr_rank_0"), folder.path("fr_rank_1")};
  const Trace trace = import_trace(files, "", 0);
  EXPECT_EQ(trace.used, 8u);
  EXPECT_EQ(program_of(test::played(files).workload, 0),
            "compute:\ngroup:\n"
            "allreduce group float32 4 allreduce_coalesced\n"
            "& allreduce group float32 8 allreduce_coalesced\n"
            "all_gather group float32 4 all_gather_into_tensor_coalesced\n"
            "& all_gather group float32 8 all_gather_into_tensor_coalesced\n"
            "reduce_scatter group float32 4 reduce_scatter_tensor_coalesced\n"
            "& reduce_scatter group float32 8 reduce_scatter_tensor_coalesced\n"
            "all_gather group float32 6 all_gather\n");
}

// One file may say the members of a group that another calls.
TEST_F(CallReaders, ReadDumpsOfTheFlightRecorderInAnyOrder) {
  const std::string own =
      entry(1, "send 0->1", "[4]", "[4]") + "," + entry(2, "all_reduce", "[4]", "[4]");
  const std::string theirs =
      entry(1, "recv 1<-0", "[4]", "[4]") + "," + entry(2, "all_reduce", "[4]", "[4]");
  folder.write("fr_rank_4", R"({"version": "2.10", "pg_config": {}, "entries": [)" + own + "]}");
  folder.write(
      "fr_rank_5",
      R"({"version": "2.10", "pg_config": {"0": {"ranks": [4, 5]}}, "entries": [)" + theirs + "]}");
  for (const auto& [first, second] :
       {std::pair{"fr_rank_4", "fr_rank_5"}, {"fr_rank_5", "fr_rank_4"}}) {
    const std::vector<std::string> files{folder.path(first), folder.path(second)};
    const Trace trace = import_trace(files, "", 0);
    EXPECT_EQ(trace.used, 4u);
    ASSERT_EQ(trace.groups.size(), 1u);
    EXPECT_EQ(trace.groups[0].members, (std::vector{WorldRank(4), WorldRank(5)}));
    EXPECT_EQ(trace.given[0].events[0].peer, 5);
    EXPECT_EQ(trace.given[1].events[0].peer, 4);
  }
  folder.write("fr_rank_4", R"({"version": "2.10", "pg_config": {"0": {"ranks": [4, 6]}}})");
  EXPECT_NE(
      test::error_in(folder,
                     [&] {
                       import_trace({folder.path("fr_rank_4"), folder.path("fr_rank_5")}, "", 0);
                     })
          .find("has other ranks than in another file"),
      std::string::npos);
}

// A rank that makes two calls with one number does not make up for one that makes none.
TEST_F(CallReaders, CountMembersThatHaveACallOfTheFlightRecorder) {
  const auto reduce = [](int number) { return entry(number, "all_reduce", "[4]", "[4]"); };
  folder.write("fr_rank_0", dump(reduce(1) + "," + reduce(1) + "," + reduce(3)));
  folder.write("fr_rank_1", dump(reduce(2) + "," + reduce(3)));
  const std::vector<std::string> files{folder.path("fr_rank_0"), folder.path("fr_rank_1")};
  const Trace trace = import_trace(files, "", 0);
  EXPECT_EQ(trace.left_out.at("calls that other members of the process group lack"), 3u);
  EXPECT_EQ(trace.used, 2u);
  EXPECT_EQ(test::played(files).workload.ranks, 2);
  folder.write("fr_rank_1", dump(reduce(1) + "," + reduce(1) + "," + reduce(3)));  // of one launch
  EXPECT_EQ(import_trace(files, "", 0).used, 6u);
}

TEST_F(CallReaders, CountDumpsOfTheFlightRecorderWithoutCallsToPlay) {
  for (const std::string& entries :
       {std::string(), entry(1, "all_reduce", "[1]", "[1]", "scheduled"),
        entry(1, "send", "[1]", "[1]")}) {
    const std::vector<std::string> files{folder.write("fr_rank_0", dump(entries))};
    const Trace trace = import_trace(files, "", 0);
    EXPECT_EQ(trace.used, 0u);
    EXPECT_EQ(trace.left_out.size(), entries.empty() ? 0u : 1u);
    EXPECT_EQ(test::error_in(folder, [&] { test::played(files); }),
              "fr_rank_0: there is nothing in it that is played");
  }
}

TEST_F(CallReaders, SayWhatIsWrongWithADumpOfTheFlightRecorder) {
  const std::string head = R"({"pg_config": {}, "version": )";
  EXPECT_EQ(refused("v_rank_0", head + R"("3.0"})"),
            "v_rank_0: version '3.0' is not read; 2.0 to 2.10 are");
  EXPECT_EQ(refused("o_rank_0", "(dp0\nVversion\np1\nV2.10\np2\ns."),
            "o_rank_0: a pickle of protocol 0 or 1; write it with protocol 2 to 5, or as JSON");
  std::string types = dump(entry(1, "all_reduce", "[1], [1]", "[1]"));
  types.insert(types.find("\"Float\"") + 7, ", \"Fo\xffo\"");
  EXPECT_EQ(refused("t_rank_0", types), "t_rank_0: entry 0: 'Fo?o' is no type of elements");
  folder.write("fr_rank_0", dump(entry(1, "all_to_all", "[100]", "[60]")));
  folder.write("fr_rank_1", dump(entry(1, "all_to_all", "[60]", "[100]")));
  EXPECT_EQ(
      test::error_in(folder,
                     [&] {
                       test::played({folder.path("fr_rank_0"), folder.path("fr_rank_1")});
                     }),
      "fr_rank_1: entry 0: call 1 of communicator '0' is all_to_all of 240 bytes but fr_rank_0: "
      "entry 0 has all_to_all of 400 bytes; it is uneven, and this format does not say how: give "
      "the ranks' execution traces");
}

// torchcomms names its backend before the call, has calls of its own, and no peers.
TEST_F(CallReaders, ReadTheFlightRecorderOfOtherBackends) {
  const auto renamed = [](std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  const std::string calls = entry(1, "all_gather_single", "[4]", "[8]") + "," +
                            entry(2, "reduce_scatter_single", "[8]", "[4]") + "," +
                            entry(3, "all_to_all_v_single", "[6]", "[6]") + "," +
                            entry(4, "send", "[6]", "[6]") + "," + entry(5, "new_window", "", "");
  const Trace trace =
      import_trace({folder.write("fr_rank_0", renamed(dump(calls), "nccl:", "ncclx:"))}, "", 0);
  EXPECT_EQ(summary_of(trace, 2).stated,
            (Counts64{{"all_gather", 16}, {"all_to_all", 24}, {"reduce_scatter", 16}}));
  EXPECT_EQ(trace.left_out, (Counts64{{"calls that are not played: new_window", 1},
                                      {"sends and receives whose peer the dump does not say", 1}}));
  const std::string batch =
      entry(1, "send 0->1", "[4]", "[4]", "scheduled") + "," + entry(1, "coalesced", "", "");
  const Trace xccl =
      import_trace({folder.write("fr_rank_0", renamed(dump(batch), "nccl:", "xccl:"))}, "", 0);
  EXPECT_EQ(summary_of(xccl, 2).ops, (Counts64{{"send", 1}}));
}

TEST_F(CallReaders, RefuseDumpsThatDoNotFit) {
  EXPECT_NE(refused("v_rank_0", R"({"version": "1.2", "pg_config": {}, "entries": []})")
                .find("version '1.2' is not read"),
            std::string::npos);
  EXPECT_NE(refused("s_rank_0", dump(entry(1, "all_reduce", "[999999999, 999999999]", "[1]")))
                .find("entry 0: a tensor of more than 2^44 bytes"),
            std::string::npos);
  EXPECT_NE(refused("m_rank_0", dump(entry(1, "send 0->7", "[1]", "[1]")))
                .find("names no member of its process group"),
            std::string::npos);
}

template <class T>
std::string packed(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
struct GoalOp {
  std::uint8_t type;
  std::uint32_t peer;
  std::uint64_t size;
  std::uint32_t tag = 0, waits = 0;
  std::vector<std::uint32_t> ends{}, starts{};  // operations that wait for its end, its start
};
std::string goal_rank(const std::vector<GoalOp>& ops) {
  std::string out = packed(static_cast<std::uint32_t>(ops.size())) + packed(std::uint32_t{0});
  std::string appendix;
  const auto list = [&](const std::vector<std::uint32_t>& of) {
    const std::string head = packed(static_cast<std::uint32_t>(of.size())) +
                             packed(static_cast<std::uint32_t>(appendix.size() / 4));
    for (const std::uint32_t one : of) appendix += packed(one);
    return head;
  };
  for (const GoalOp& op : ops)
    out += packed(op.waits) + packed(op.type) + packed(op.peer) + packed(op.size) + packed(op.tag) +
           packed(std::uint8_t{0}) + packed(std::uint8_t{0}) + list(op.ends) + list(op.starts);
  return out + appendix;
}
std::string goal_file(const std::vector<std::string>& ranks) {
  std::string table, body;
  const std::size_t head = 4 + 2 + 16 * ranks.size();
  for (const std::string& rank : ranks) {
    table += packed(std::uint64_t{head + body.size()});
    body += rank;
    table += packed(std::uint64_t{head + body.size()});
  }
  return packed(std::uint64_t{4223}) + packed(static_cast<std::uint32_t>(ranks.size())) +
         packed(std::uint8_t{1}) + packed(std::uint8_t{1}) + table + body;
}

TEST_F(CallReaders, BinaryGoalIsWhatItsTextIs) {
  const std::string text = folder.write(
      "t.goal",
      "num_ranks 2\nrank 0 {\na: calc 1500\nb: send 4096b to 1 tag 7\nc: calc 20\nb requires a\n"
      "c irequires b\n}\nrank 1 {\na: recv 4096b from 0 tag 7\nb: calc 5\nb requires a\n}\n");
  const std::string binary = folder.write(
      "t.bin",
      goal_file(
          {goal_rank({{3, 0, 1500, 0, 0, {1}, {}}, {1, 1, 4096, 7, 1, {}, {2}}, {3, 0, 20, 0, 1}}),
           goal_rank({{2, 0, 4096, 7, 0, {1}, {}}, {3, 0, 5, 0, 1}})}));
  const Trace one = import_trace({text}, "", 0), two = import_trace({binary}, "", 0);
  EXPECT_EQ(two.format, "goal");
  EXPECT_EQ(two.used, one.used);
  for (const int rank : {0, 1})
    EXPECT_EQ(program_of(test::played({binary}).workload, rank),
              program_of(test::played({text}).workload, rank));
}

TEST_F(CallReaders, RefuseDamagedBinaryGoal) {
  const std::string good = goal_file({goal_rank({{3, 0, 1, 0, 0, {1}, {}}, {3, 0, 2, 0, 1}})});
  EXPECT_EQ(refused("ok.bin", good), "");
  EXPECT_NE(refused("short.bin", good.substr(0, good.size() - 6)).find("outside the file"),
            std::string::npos);
  EXPECT_NE(refused("waits.bin", goal_file({goal_rank({{3, 0, 1, 0, 3}})}))
                .find("an operation waits for 3 others, and 0 have it in their lists"),
            std::string::npos);
  EXPECT_NE(refused("any.bin", goal_file({goal_rank({{2, 0xffffffff, 1}}), goal_rank({})}))
                .find("a receive from anybody"),
            std::string::npos);
  EXPECT_NE(refused("type.bin", goal_file({goal_rank({{9, 0, 1}})})).find("type 9"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
