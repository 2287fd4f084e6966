// Exports of nsys, written here after the documented schema: what becomes of them, and refusals.
// None of them is of a real nsys.
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/shell.h"
#include "tests/trace/traces.h"

#ifdef GHOSTRANK_WITH_SQLITE3
#include "tests/trace/sqlite_text.h"
#endif

namespace ghostrank {
namespace {

using test::Folder;

#ifdef GHOSTRANK_WITH_SQLITE3
using Counts64 = std::map<std::string, std::uint64_t>;
using test::program_of;

constexpr const char* kTables = R"(
  CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
    eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
  CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
    text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER, jsonTextId INTEGER,
    jsonText TEXT, binaryData BLOB);
  CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL,
    idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT,
    arrayOrUnionDetail INTEGER, offset INTEGER);
  INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset) VALUES
    (1, 0, 0, 18, 'NCCL communicator ID', NULL), (1, 0, 1, 5, 'No. of ranks', 8),
    (1, 0, 2, 5, 'Rank', 12), (1, 0, 3, 5, 'CUDA device', 16),
    (1, 1, 0, 18, 'NCCL communicator ID', NULL), (1, 1, 1, 22, 'Message size [bytes]', 8),
    (1, 1, 2, 4711, 'Reduction operation', 16),
    (1, 2, 0, 18, 'NCCL communicator ID', NULL), (1, 2, 1, 22, 'Message size [bytes]', 8),
    (1, 2, 2, 5, 'Peer rank', 16),
    (1, 3, 0, 18, 'NCCL communicator ID', NULL), (1, 3, 1, 22, 'Message size [bytes]', 8),
    (1, 3, 2, 5, 'Root', 16);
)";

// A number as SQL has it in hexadecimal, least byte first.
std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8)
    for (const int shift : {4, 0}) out += "0123456789ABCDEF"[value >> shift & 15];
  return out;
}
std::string payload(std::uint64_t schema, const std::string& fields) {
  const std::size_t bytes = fields.size() / 2;
  return "X'" + little_endian(1, 8) + little_endian(schema, 8) + little_endian(bytes, 8) +
         little_endian(32 + bytes, 8) + fields + "'";
}
std::string member(std::uint64_t comm, int ranks, int rank) {
  return payload(0, little_endian(comm, 8) + little_endian(ranks, 4) + little_endian(rank, 4) +
                        little_endian(0, 8));
}
std::string sized(std::uint64_t comm, std::uint64_t bytes) {
  return payload(1, little_endian(comm, 8) + little_endian(bytes, 8) + little_endian(0, 8));
}
std::string to(std::uint64_t comm, std::uint64_t bytes, int peer, int schema = 2) {
  return payload(schema, little_endian(comm, 8) + little_endian(bytes, 8) + little_endian(peer, 8));
}

constexpr std::uint64_t kWorld = 0x8000'0000'0000'0abc;

// The SQL of an export. Times in nanoseconds; every process has one thread.
class NsysExport {
 public:
  explicit NsysExport(const std::string& version = "3.24.14") {
    sql = kTables;
    insert("META_DATA_EXPORT", "'EXPORT_SCHEMA_VERSION', '" + version + "'");
  }
  static std::string pid(int process) { return std::to_string(process * 0x1000000L); }
  static std::string thread(int process) { return std::to_string(process * 0x1000000L + 7); }

  void insert(const std::string& table, const std::string& values) {
    sql += "INSERT INTO " + table + " VALUES (" + values + ");\n";
  }
  std::string id_of(const std::string& text) {
    const auto [at, fresh] = ids_.try_emplace(text, ids_.size() + 100);
    if (fresh) insert("StringIds", std::to_string(at->second) + ", '" + text + "'");
    return std::to_string(at->second);
  }
  // A kernel whose process launches it at `launched`.
  void kernel(int process, long start, long end, int stream, const std::string& name, long launched,
              int device = 0) {
    insert("CUPTI_ACTIVITY_KIND_KERNEL",
           times(start, end) + std::to_string(device) + ", 1, " + std::to_string(stream) + ", " +
               launch(process, launched) + ", " + pid(process) + ", 1, " + id_of(name));
  }
  void copy(int process, long start, long end, int stream, long launched) {
    insert("CUPTI_ACTIVITY_KIND_MEMCPY", times(start, end) + "0, 1, " + std::to_string(stream) +
                                             ", " + launch(process, launched) + ", " +
                                             pid(process) + ", 64, 8");
  }
  // `text`: a registered string if it begins with "nccl", else in place.
  void range(int process, long start, long end, const std::string& text,
             const std::string& binary = "NULL") {
    const bool registered = text.starts_with("nccl");
    insert("NVTX_EVENTS", times(start, end) + "59, " + (registered ? "NULL" : "'" + text + "'") +
                              ", " + thread(process) + ", " + (registered ? id_of(text) : "NULL") +
                              ", 1, NULL, NULL, " + binary);
  }

  std::string sql;

 private:
  static std::string times(long start, long end) {
    return std::to_string(start) + ", " + std::to_string(end) + ", ";
  }
  std::string launch(int process, long at) {
    const std::string correlation = std::to_string(++correlation_of_[process]);
    insert("CUPTI_ACTIVITY_KIND_RUNTIME",
           times(at, at + 5) + "0, " + thread(process) + ", " + correlation + ", 1");
    return correlation;
  }
  std::map<std::string, std::size_t> ids_;
  std::map<int, int> correlation_of_;
};

class Nsys : public testing::Test {
 protected:
  std::string write(const NsysExport& one, const std::string& name = "report.sqlite") {
    EXPECT_EQ(test::write_sqlite(folder.path(name), one.sql), "");
    return folder.path(name);
  }
  std::string refused(const std::string& sql) {
    EXPECT_EQ(test::write_sqlite(folder.path("r.sqlite"), sql), "");
    return test::error_in(folder, [&] { test::played({folder.path("r.sqlite")}); });
  }
  static bool has_note(const Trace& trace, const std::string& part) {
    return std::any_of(trace.notes.begin(), trace.notes.end(), [&](const std::string& note) {
      return note.find(part) != std::string::npos;
    });
  }
  Folder folder;
};

// Two processes of one export: a gemm, an all-reduce of 4 KiB beside a second gemm, the optimizer
// after both.
NsysExport two_ranks(const std::string& version = "3.24.14") {
  NsysExport out(version);
  for (const int p : {10, 11}) {
    out.range(p, 0, 50, "ncclCommInitRankConfig", member(kWorld, 2, p - 10));
    out.range(p, 100, 900, "iteration 1");
    out.range(p, 100, 200, "forward");
    out.kernel(p, 1000, 3000, 7, "gemm", 110);
    out.range(p, 120, 150, "ncclAllReduce", sized(kWorld, 4096));
    out.kernel(p, 3500, 9500, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 130);
    out.kernel(p, 3500, 4500, 7, "gemm", 160);
    out.kernel(p, 9500, 9700, 7, "adam", 170);
  }
  return out;
}

// A process's steps begin with its ranges that are named like steps and lie in no other such one.
TEST_F(Nsys, PlaysStepAfterStep) {
  NsysExport out = two_ranks();
  for (const int p : {10, 11}) {
    out.range(p, 1000, 2000, "iteration 2");
    out.range(p, 1100, 1300, "train_step 2");
    out.kernel(p, 9900, 12'900, 7, "gemm", 1050);
    out.range(p, 1200, 1230, "ncclAllReduce", sized(kWorld, 4096));
    out.kernel(p, 13'000, 14'000, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1210);
  }
  const Trace trace = import_trace({write(out)}, "", 0);
  EXPECT_EQ(trace.steps, 2u);
  EXPECT_TRUE(has_note(trace, "steps are marked, in the median 0 us long on the host; 2 are"));
  const Workload workload = replay(trace, {}).workload;
  EXPECT_EQ(workload.cycle, 2u);
  EXPECT_EQ(test::program_of(workload, 0, 1),
            "stream 7:\ncompute 200000 idle\ncompute 3000000 gemm\nrecord 0\n"
            "0x8000000000000abc:\nwait 0\n"
            "allreduce 0x8000000000000abc uint8 4096 AllReduce\n");
}

TEST_F(Nsys, ReadsKernelsAndCallsOfTheProcessesOfAnExport) {
  for (const char* version : {"3.24.14", "3.25.0"}) {
    const std::string file = write(two_ranks(version));
    const Trace trace = import_trace({file}, "", 0);
    EXPECT_EQ(trace.format, "nsys");
    EXPECT_EQ(trace.ranks, 2);
    const TraceSummary found = summary_of(trace, 2);
    EXPECT_EQ(found.ops, (Counts64{{"allreduce", 2}, {"compute", 6}}));
    EXPECT_EQ(found.stated, (Counts64{{"allreduce", 8192}}));
    EXPECT_EQ(found.group_bytes, (Counts64{{"0x8000000000000abc", 8192}}));
    EXPECT_EQ(trace.used, 14U) << "kernels, calls, memberships and steps";
    EXPECT_EQ(trace.left_out,
              (Counts64{{"calls of the host to CUDA", 8},
                        {"ranges and marks of NVTX that are no calls of NCCL", 2}}));
    EXPECT_TRUE(has_note(trace, "steps are marked, in the median 0 us long on the host; 1 is"));
    const Replay replay = test::played({file});
    EXPECT_EQ(replay.workload.roles.size(), 1U);
    // Times are those of the device: 500 ns of idle time before the second gemm.
    EXPECT_EQ(program_of(replay.workload, 1),
              "stream 7:\ncompute 2000000 gemm\nrecord 0\ncompute 500000 idle\ncompute 1000000 "
              "gemm\nwait 1\n"
              "compute 200000 adam\n"
              "0x8000000000000abc:\nwait 0\nallreduce 0x8000000000000abc uint8 4096 AllReduce\n"
              "record 1\n");
  }
}

TEST_F(Nsys, RanksOfSeveralFilesAreThoseOfTheLargestCommunicator) {
  constexpr std::uint64_t kPair = 0x77;
  std::vector<std::string> files;
  for (const int rank : {3, 1, 0, 2}) {  // a process 5 on each of four machines
    NsysExport one;
    one.range(5, 0, 50, "ncclCommInitRank", member(kWorld, 4, rank));
    one.range(5, 60, 70, "ncclCommSplit", member(kPair + rank % 2, 2, rank / 2));
    one.range(5, 100, 120, "ncclBroadcast", to(kPair + rank % 2, 64, 1, 3));
    one.kernel(5, 200, 300, 9, "ncclDevKernel_Broadcast_RING_LL", 110);
    files.push_back(write(one, "node" + std::to_string(rank) + "x.sqlite"));
  }
  const Trace trace = import_trace(files, "", 0);
  ASSERT_EQ(trace.given.size(), 4U);
  EXPECT_EQ(trace.given[3].file, folder.path("node3x.sqlite"));
  ASSERT_EQ(trace.groups.size(), 3U);
  EXPECT_EQ(trace.groups[1].members, (std::vector<WorldRank>{WorldRank(1), WorldRank(3)}));
  EXPECT_EQ(trace.given[0].events.front().peer, 1) << "the root is a position in the communicator";
  EXPECT_EQ(test::played(files).workload.groups.size(), 2U);
}

// PyTorch's coalesced calls, which one kernel serves.
TEST_F(Nsys, AGroupsCollectivesAreOneLaunch) {
  NsysExport all;
  for (const int p : {0, 1}) {
    all.range(p + 1, 0, 50, "ncclCommInitRank", member(kWorld, 2, p));
    all.range(p + 1, 100, 101, "ncclGroupStart");
    for (const int i : {0, 1, 2})
      all.range(p + 1, 102 + 4 * i, 104 + 4 * i, "ncclReduceScatter", sized(kWorld, 256 << i));
    all.range(p + 1, 120, 150, "ncclGroupEnd");
    all.kernel(p + 1, 1000, 1400, 20, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 130);
    all.range(p + 1, 200, 210, "ncclReduceScatter", sized(kWorld, 256));
    all.kernel(p + 1, 1500, 1600, 20, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 205);
  }
  const Workload workload = test::played({write(all)}).workload;
  ASSERT_EQ(workload.launches.size(), 1U) << program_of(workload, 0);
  EXPECT_EQ(workload.launches[0].size(), 3U);
  std::vector<std::pair<std::uint32_t, int>> launches;
  for (const OpList& stream : workload.roles[0].iterations[0].streams)
    for (const Op& op : stream)
      if (op.kind == Op::Kind::collective) launches.emplace_back(op.launch, op.launch_index);
  EXPECT_EQ(launches, (std::vector<std::pair<std::uint32_t, int>>{{1, 0}, {1, 1}, {1, 2}, {0, 0}}));
}

TEST_F(Nsys, AGroupsMessagesStartTogetherAndTakeItsKernelsTime) {
  NsysExport all;
  for (const int p : {0, 1}) {
    all.range(p + 1, 0, 50, "ncclCommInitRank", member(kWorld, 2, p));
    all.range(p + 1, 100, 101, "ncclGroupStart");
    all.range(p + 1, 101, 102, "ncclGroupStart");
    for (const int peer : {0, 1}) {
      all.range(p + 1, 102 + 4 * peer, 103 + 4 * peer, "ncclSend", to(kWorld, 256, peer));
      all.range(p + 1, 104 + 4 * peer, 105 + 4 * peer, "ncclRecv", to(kWorld, 256, peer));
    }
    all.range(p + 1, 112, 114, "ncclGroupEnd");  // launches nothing
    all.range(p + 1, 120, 150, "ncclGroupEnd");
    all.kernel(p + 1, 1000, 1400, 20, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", 130);
    all.kernel(p + 1, 1400, 1500, 20, "gemm", 160);
  }
  const std::string file = write(all);
  const Trace trace = import_trace({file}, "", 0);
  EXPECT_EQ(summary_of(trace, 2).ops, (Counts64{{"compute", 2}, {"recv", 2}, {"send", 2}}));
  EXPECT_EQ(trace.left_out.at("messages of a rank to itself"), 4U);
  EXPECT_EQ(program_of(test::played({file}).workload, 0),
            "stream 20:\nwait 0\nwait 1\ncompute 100000 gemm\n"
            "p2p 0:\nsend? p2p +1 uint8 256 Send\nrecord 0\n"
            "p2p 1:\nrecv? p2p +1 uint8 256 Recv\nrecord 1\n");
}

TEST_F(Nsys, WhereSizesAreAbsentTimesAreKeptAndBytesAreNot) {
  NsysExport one = two_ranks();
  one.sql += "UPDATE NVTX_EVENTS SET binaryData = NULL;";
  const Trace trace = import_trace({write(one)}, "", 0);
  const TraceSummary found = summary_of(trace, 2);
  EXPECT_EQ(found.ops, (Counts64{{"compute", 8}}));
  EXPECT_TRUE(found.stated.empty());
  EXPECT_EQ(found.compute, 2 * (2000 + 6000 + 1000 + 200 + 500 + 5000 + 2500) * kPicosPerNano)
      << "kernels, and the idle time of their streams";
  EXPECT_EQ(trace.left_out.at("calls of NCCL whose payload lacks communicator or size"), 2U);
  EXPECT_TRUE(has_note(trace, "2 kernels of NCCL have no call with a communicator and a size"));
}

TEST_F(Nsys, ReadsPayloadsAsJson) {
  for (const bool consolidated : {false, true}) {
    NsysExport one = two_ranks();
    const std::string text = R"({"NCCL communicator ID": 9223372036854778556, )"
                             R"("Message size [bytes]": 4096, "Reduction operation": "Sum"})";
    one.sql += "UPDATE NVTX_EVENTS SET binaryData = NULL, " +
               (consolidated ? "jsonTextId = " + one.id_of(text) : "jsonText = '" + text + "'") +
               " WHERE start = 120;";
    one.sql += R"(UPDATE NVTX_EVENTS SET binaryData = NULL, jsonText = )"
               R"('{"NCCL communicator ID": 9223372036854778556, "No. of ranks": 2, "Rank": ' ||)"
               R"( (globalTid / 16777216 - 10) || '}' WHERE start = 0;)";
    const Trace trace = import_trace({write(one)}, "", 0);
    EXPECT_EQ(summary_of(trace, 2).stated, (Counts64{{"allreduce", 8192}}));
    EXPECT_EQ(trace.ranks, 2);
  }
}

TEST_F(Nsys, CapturesThatBeginLateNeedAllRanks) {
  std::vector<std::string> files;
  for (const int rank : {1, 0}) {
    NsysExport one;
    one.range(5, 100, 120, "ncclAllGather", sized(kWorld, 64));
    one.kernel(5, 200, 300 + rank, 9, "ncclDevKernel_AllGather_RING_LL", 110);
    one.kernel(5, 400, 500 + rank, 7, "gemm", 130);
    files.push_back(write(one, "rank" + std::to_string(rank) + ".sqlite"));
  }
  const Trace trace = import_trace(files, "", 0);
  EXPECT_EQ(trace.given[1].file, files[0]);
  EXPECT_EQ(summary_of(trace, 2).out, (Counts64{{"all_gather", 256}}));
  EXPECT_TRUE(has_note(trace, "ranks are those at the end of the files' names"));
  EXPECT_EQ(test::error_in(folder, [&] { import_trace({files[0]}, "", 0); }),
            "rank1.sqlite: communicator 0x8000000000000abc was made before the capture began and "
            "only one of its ranks is here; give the exports of all ranks, or profile from the "
            "start of the process");
  const Trace alone = import_trace({files[0]}, "", 8);
  EXPECT_EQ(alone.given.front().rank, WorldRank(1));
  EXPECT_EQ(summary_of(alone, 8).out, (Counts64{{"all_gather", 512}}));
}

TEST_F(Nsys, CopiesStandForKernelsWhereNcclLaunchedNone) {
  NsysExport one = two_ranks();
  for (const int p : {10, 11}) {
    one.range(p, 300, 320, "ncclAllGather", sized(kWorld, 1024));
    one.copy(p, 9800, 9900, 20, 310);
    one.copy(p, 9900, 9950, 7, 330);
    one.range(p, 400, 420, "ncclReduceScatter", sized(kWorld, 1024));  // into a CUDA graph
  }
  const Trace trace = import_trace({write(one)}, "", 0);
  EXPECT_EQ(summary_of(trace, 2).ops,
            (Counts64{{"all_gather", 2}, {"allreduce", 2}, {"compute", 8}}));
  EXPECT_EQ(trace.left_out.at("calls of NCCL that launched nothing on a device"), 2U);
}

TEST_F(Nsys, GraphsAndOtherDevicesAreTracksOfTheirOwn) {
  NsysExport one;
  one.kernel(5, 100, 200, 7, "gemm", 50);
  one.kernel(5, 100, 250, 7, "gemm", 60, 3);
  one.sql +=
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId "
      "INTEGER, streamId INTEGER, globalPid INTEGER);";
  one.insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "200, 900, 0, 7, " + NsysExport::pid(5));
  const std::string file = write(one);
  EXPECT_TRUE(has_note(import_trace({file}, "", 0), "1 CUDA graphs were recorded whole"));
  EXPECT_EQ(program_of(test::played({file}).workload, 0),
            "stream 7:\ncompute 100000 gemm\ncompute 700000 CUDA graph\n"
            "device 3 stream 7:\ncompute 150000 gemm\n");
}

TEST_F(Nsys, RefusesWhatItCannotKnow) {
  NsysExport one = two_ranks();
  one.range(10, 60, 70, "ncclCommInitRank", member(kWorld, 2, 1));
  EXPECT_NE(refused(one.sql).find("is another process before"), std::string::npos);

  one = two_ranks();
  one.kernel(12, 100, 200, 7, "gemm", 50);
  EXPECT_NE(refused(one.sql).find("uses a device but joins no communicator"), std::string::npos);

  one = two_ranks();
  one.range(10, 300, 310, "ncclAllReduce", sized(0x99, 8));
  one.kernel(10, 9800, 9900, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 305);
  EXPECT_NE(refused(one.sql).find("communicator 0x99 was made before the capture began"),
            std::string::npos);

  one = two_ranks();
  one.range(10, 300, 310, "ncclSend", to(kWorld, 8, 2));
  one.kernel(10, 9800, 9900, 20, "ncclDevKernel_SendRecv", 305);
  EXPECT_NE(refused(one.sql).find("NVTX_EVENTS row 9: peer 2 of a communicator of 2"),
            std::string::npos);

  one = two_ranks();
  one.range(10, 60, 70, "ncclCommInitRank", member(0x5, 1'000'000'000, 0));
  EXPECT_EQ(refused(one.sql), "r.sqlite: NVTX_EVENTS row 9: rank 0 of 1000000000 ranks");

  one = two_ranks();
  for (int comm = 1; comm < 80; ++comm)
    one.range(10, 60, 70, "ncclCommInitRank", member(comm, 1'000'000 + (comm == 7), 0));
  EXPECT_EQ(refused(one.sql),
            "r.sqlite: communicators of more than 67108864 members together; the file is damaged");
}

TEST_F(Nsys, RefusesHostileDatabases) {
  const auto after = [](const std::string& more) { return two_ranks().sql + more; };
  const std::vector<std::pair<std::string, std::string>> rows{
      {"UPDATE META_DATA_EXPORT SET value = '3.28.1'",
       "r.sqlite: EXPORT_SCHEMA_VERSION '3.28.1' is not read; 3.24 and 3.25 are: export the report "
       "with an nsys that writes them"},
      {"DELETE FROM META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION '' is not read"},
      {"DROP TABLE StringIds", "r.sqlite: there is no table StringIds"},
      {"DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL",
       "r.sqlite: there are no kernels of a device; profile with nsys --trace=cuda,nvtx"},
      {"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'NaN' WHERE end = 4500",
       "r.sqlite: CUPTI_ACTIVITY_KIND_KERNEL row 3: start is no integer from 0 to "
       "9000000000000000"},
      {"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 9e999 WHERE end = 4500",
       "KERNEL row 3: start is no integer"},
      {"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -5 WHERE end = 4500",
       "KERNEL row 3: start is no integer"},
      {"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 5 WHERE end = 4500",
       "KERNEL row 3: end is no integer from 3500 to"},
      {"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL",
       "KERNEL row 1: globalPid is no integer"},
      {"UPDATE StringIds SET value = X'00'", "StringIds row 1: value is no text"},
      {"UPDATE NVTX_EVENTS SET binaryData = 'text'", "NVTX_EVENTS row 1: binaryData is no BLOB"},
      {"UPDATE NVTX_EVENTS SET binaryData = substr(binaryData, 1, 40)",
       "NVTX_EVENTS row 1: binaryData has 8 bytes of payload, fewer than its schema"},
      {"UPDATE NVTX_EVENTS SET binaryData = NULL, jsonText = '{\"Rank\": '",
       "NVTX_EVENTS row 1: jsonText:1:"},
      {"UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET type = 19 WHERE name = 'Rank'",
       "NVTX_PAYLOAD_SCHEMA_ENTRIES row 3: type is no integer of 4 or 8 bytes"},
      {"INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset) "
       "VALUES (1, 0, 4, 5, 'Rank', 20)",
       "row 14: the schema has 'Rank' at two places"},
      {"ALTER TABLE StringIds RENAME TO s; CREATE VIEW StringIds AS SELECT * FROM s",
       "r.sqlite: StringIds is no ordinary table; nsys writes only such"},
      {"DROP TABLE StringIds; CREATE VIEW StringIds AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL "
       "SELECT id + 1 FROM n) SELECT id, 'ncclAllReduce' AS value FROM n",
       "StringIds is no ordinary table"},
      {"DROP TABLE StringIds; CREATE TABLE StringIds (id INTEGER, other INTEGER, value TEXT AS "
       "(hex(zeroblob(1000000))))",
       "r.sqlite: StringIds has no column value; is it an export of nsys?"},
      {"UPDATE StringIds SET value = 'nccl' || hex(zeroblob(9000000)) WHERE id = 100",
       "StringIds row 1: SQLite: string or blob too big"},
  };
  for (const auto& [sql, error] : rows)
    EXPECT_NE(refused(after(sql)).find(error), std::string::npos) << sql << "\n"
                                                                  << refused(after(sql));
}

TEST_F(Nsys, RefusesDamagedFiles) {
  const std::string whole = test::read_file(write(two_ranks()));
  const auto damaged = [&](const std::string& bytes) {
    folder.write("d.sqlite", bytes);
    return test::error_in(folder, [&] { test::played({folder.path("d.sqlite")}, 0, "nsys"); });
  };
  EXPECT_EQ(damaged("nothing"),
            "d.sqlite: is no SQLite database; unpack it if it is compressed, since it is read in "
            "place");
  EXPECT_NE(damaged(whole.substr(0, whole.size() / 2)).find("malformed"), std::string::npos);
  std::string scrambled = whole;
  for (std::size_t at = 600; at < scrambled.size(); at += 97) scrambled[at] = '\x7f';
  EXPECT_NE(damaged(scrambled).find("d.sqlite: "), std::string::npos);
}

TEST_F(Nsys, IsCountedAsAnIndependentDecoderDoesAndPlaysInAJob) {
  const std::string file = write(two_ranks());
  const std::string binary = GHOSTRANK_BINARY;
  const test::Outcome found = test::shell(binary + " profile import " + file + " --json -");
  ASSERT_EQ(found.status, 0) << found.text;
  if (test::shell("python3 -c 'import sqlite3'").status == 0) {
    const test::Outcome expected =
        test::shell("python3 '" GHOSTRANK_SOURCE_DIR "/tests/trace/decode.py' nsys " + file);
    ASSERT_EQ(expected.status, 0) << expected.text;
    for (const char* key : {"ops", "bytes"})
      EXPECT_EQ(nlohmann::json::parse(found.text)[key], nlohmann::json::parse(expected.text)[key]);
  }
  const std::string job =
      folder.write("job.yaml",
                   "trace: report.sqlite\ncluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                   "fabric: {kind: virtual}\nrun: {iterations: 1, warmup: 0}\n");
  const test::Outcome played = test::shell(binary + " run " + job + " --json -");
  ASSERT_EQ(played.status, 0) << played.text;
  EXPECT_GT(nlohmann::json::parse(played.text)["traffic"]["wire_bytes_per_iteration"], 4096);
  NsysExport old = two_ranks("3.11.0");
  EXPECT_EQ(
      test::shell(binary + " profile import " + write(old, "old.sqlite") + " --json -").status, 2);
}
#else
TEST(NsysWithoutSqlite, IsRefusedByName) {
  const Folder folder;
  const std::string file = folder.write("r.sqlite", std::string("SQLite format 3\0", 16));
  EXPECT_NE(test::error_of([&] { import_trace({file}, "", 0); }).find("built without SQLite"),
            std::string::npos);
}
#endif

}  // namespace
}  // namespace ghostrank
