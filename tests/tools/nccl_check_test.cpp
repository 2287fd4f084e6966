// NCCL's log against what is played here. One log and one graph dump are NCCL's own, of a run with
// four nodes of one GPU and two NICs (tests/nccl_trace). The others are written by hand, in the
// forms of NCCL's source: rings and trees after the published orders of an HGX H100, the choices
// after logs of real clusters (NVIDIA/nccl issue 1752: 64 nodes of 8).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_topology.h"
#include "profiles/planners/plan.h"
#include "profiles/trace/trace_file.h"
#include "tests/profiles/support.h"
#include "tests/shell.h"
#include "tools/nccl/check.h"
#include "tools/nccl/result.h"

namespace ghostrank {
namespace {

using ::testing::HasSubstr;

std::string log_of_512() { return test::read_file(GHOSTRANK_TRANSCRIPTS "/nccl.log"); }

std::string recorded(const std::string& name) {
  return read_trace_file(GHOSTRANK_NCCL_RECORDED "/own/" + name);
}

// The node of the recorded log, as NCCL dumped it.
Communicator recorded_node() {
  Communicator at;
  at.machine = parse_nccl_topology(recorded("topology.xml"), "topology.xml");
  return at;
}

NcclFindings findings(const std::string& text, const char* node = "hgx-h100-400g") {
  NcclLog log;
  read_nccl_log(text, "nccl.log", log);
  Communicator at;
  at.node = node;
  return check_nccl_log(log, nccl_library_of(log.version), at);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::invalid_argument(from);
  return text.replace(at, from.size(), to);
}

std::vector<std::string> differing(const NcclFindings& all) {
  std::vector<std::string> out;
  for (const NcclCommFindings& comm : all.comms)
    for (const auto* list : {&comm.communicator, &comm.calls})
      for (const NcclFinding& one : *list)
        if (one.compared() && !one.same) out.push_back(one.what);
  return out;
}

TEST(NcclCheck, FindsALogOfAnHgxClusterAsItIsPlayed) {
  const NcclFindings all = findings(log_of_512());
  EXPECT_EQ(all.library, "nccl-2.28");
  EXPECT_EQ(differing(all), std::vector<std::string>{});
  EXPECT_EQ(all.not_compared, 0U);
  EXPECT_EQ(all.same, 10U);  // 2 graphs, 4 numbers of channels, rings, trees, 2 kinds of call
  ASSERT_EQ(all.comms.size(), 1U);
  EXPECT_EQ(all.comms[0].where, "512 ranks on 64 nodes");
  EXPECT_EQ(all.comms[0].calls[1].times, 2U);
}

struct Mutation {
  const char *from, *to, *found;
};

TEST(NcclCheck, FindsNcclsOwnLogAsItIsPlayed) {
  NcclLog log;
  read_nccl_log(recorded("log.gz"), "log", log);
  EXPECT_EQ(log.version, "2.28.9");
  const NcclFindings all = check_nccl_log(log, nccl_library_of(log.version), recorded_node());
  EXPECT_EQ(differing(all), std::vector<std::string>{});
  EXPECT_EQ(all.not_compared, 0U);
  EXPECT_EQ(all.same, 57U);
  ASSERT_EQ(all.comms.size(), 1U);
  EXPECT_EQ(all.comms[0].where, "4 ranks on 4 nodes");
}

TEST(NcclCheck, FindsWhatDiffersInNcclsOwnLog) {
  NcclLog log;
  std::string text = replaced(recorded("log.gz"), "Ring 03 : 3 -> 0 -> 1", "Ring 03 : 1 -> 0 -> 3");
  text = replaced(text, "Algo TREE proto LL channel{Lo..Hi}={0..0}",
                  "Algo RING proto LL channel{Lo..Hi}={0..0}");
  read_nccl_log(text, "log", log);
  EXPECT_EQ(differing(check_nccl_log(log, "nccl-2.28", recorded_node())),
            (std::vector<std::string>{"rings", "allreduce of 1 float sum"}));
}

TEST(NcclCheck, FindsNcclsOwnGraphDumpAsItIsSearched) {
  const auto dump = parse_nccl_graphs(recorded("graph.xml"), "graph.xml");
  const NcclFindings all = check_nccl_graphs(*dump, "nccl-2.28", recorded_node());
  EXPECT_EQ(differing(all), std::vector<std::string>{});
  EXPECT_EQ(all.same, 7U);
}

TEST(NcclCheck, FindsWhatDiffers) {
  for (const Mutation& m : {
           Mutation{" 0   7   6   5", " 0   7   5   6", "rings"},
           Mutation{"1/256/-1->0->-1", "1/128/-1->0->-1", "trees"},
           Mutation{"1/256/-1->0->-1", "1/256/-1->0->8", "trees"},
           Mutation{"16 coll channels", "32 coll channels", "channels"},
           Mutation{"16 nvls channels", "0 nvls channels", "NVLS channels"},
           Mutation{"1 p2p channels per", "2 p2p channels per", "channels per peer"},
           Mutation{"Pattern 4, crossNic 2, nChannels 8", "Pattern 4, crossNic 2, nChannels 4",
                    "ring graph"},
           Mutation{"Pattern 3, crossNic 2, nChannels 8, bw 48",
                    "Pattern 3, crossNic 2, nChannels "
                    "8, bw 24",
                    "tree graph"},
           Mutation{"Algo TREE proto LL128", "Algo RING proto LL128",
                    "allreduce of 4,194,304 float sum"},
           Mutation{"proto LL128 channel{Lo..Hi}={0..15}", "proto LL128 channel{Lo..Hi}={0..7}",
                    "allreduce of 4,194,304 float sum"},
       })
    EXPECT_EQ(differing(findings(replaced(log_of_512(), m.from, m.to))),
              std::vector<std::string>{m.found})
        << m.from;
}

// script(1) gives the command a terminal.
TEST(NcclCheck, ShowsInRedWhatDiffers) {
  if (test::shell("script --version").status != 0) GTEST_SKIP() << "no script(1)";
  const std::string check =
      GHOSTRANK_BINARY " nccl check " GHOSTRANK_TRANSCRIPTS "/nccl.log --node dgx-a100";
  const std::string said =
      test::shell("env -u NO_COLOR TERM=xterm script -qec '" + check + "' /dev/null").text;
  EXPECT_THAT(said, HasSubstr("\x1b[1;31mdiffers\x1b[0m"));
  EXPECT_EQ(test::shell(check).text.find('\x1b'), std::string::npos);
}

TEST(NcclCheck, KnowsThatAnAverageHasNoNvlsTree) {
  const std::string average =
      replaced(log_of_512(), "count 8388608 datatype 7 op 0", "count 8388608 datatype 7 op 4");
  EXPECT_EQ(differing(findings(average)),
            std::vector<std::string>{"allreduce of 8,388,608 float avg"});
}

TEST(NcclCheck, AnotherNodeDiffers) {
  const std::vector<std::string> differ = differing(findings(log_of_512(), "dgx-a100"));
  EXPECT_THAT(differ, ::testing::Contains("ring graph"));
  EXPECT_THAT(differ, ::testing::Contains("NVLS channels"));
}

// Both ranks of a communicator of one GPU a node, GPU 3 of each: 4 channels over its own NIC.
constexpr const char* kTwoNodes =
    "NCCL version 2.30.7+cuda13.0\n"
    "a:1:7 [3] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 3 nvmlDev 3 busId 1 "
    "commId 0x9 - Init START\n"
    "a:1:7 [3] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
    "a:1:7 [3] NCCL INFO Ring 00 : 1 -> 0 -> 1\n"
    "a:1:7 [3] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 [2] -1/-1/-1->0->1 [3] "
    "-1/-1/-1->0->1\n"
    "a:1:7 [3] NCCL INFO 4 coll channels, 4 collnet channels, 0 nvls channels, 4 p2p channels, 4 "
    "p2p channels per peer\n"
    "b:1:7 [3] NCCL INFO ncclCommInitRank comm 0x1 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId 1 "
    "commId 0x9 - Init START\n"
    "b:1:7 [3] NCCL INFO comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
    "b:1:7 [3] NCCL INFO Ring 00 : 0 -> 1 -> 0\n";

TEST(NcclCheck, JoinsTheRanksOfACommunicator) {
  const NcclFindings all = findings(kTwoNodes);
  EXPECT_EQ(all.library, "nccl-2.30");
  ASSERT_EQ(all.comms.size(), 1U);
  EXPECT_EQ(differing(all), std::vector<std::string>{});
  EXPECT_EQ(all.same, 6U);
}

// Four ranks dealt over two hosts: 0 and 2 on a, 1 and 3 on b (srun -m cyclic, mpirun --map-by
// node). `ring` is channel 0's.
std::string log_of_dealt_ranks(const std::string& ring) {
  std::string text = "NCCL version 2.28.9+cuda12.9\n";
  for (const int rank : {0, 1, 2, 3}) {
    const std::string gpu = std::to_string(rank / 2), at = std::to_string(rank);
    const std::string head = (rank % 2 == 0 ? "a:" : "b:") + at + ":7 [" + gpu + "] NCCL INFO ";
    text += head + "ncclCommInitRank comm 0x1 rank " + at + " nranks 4 cudaDev " + gpu +
            " nvmlDev " + gpu + " busId 1 commId 0x9 - Init START\n" + head + "comm 0x1 rank " +
            at + " nRanks 4 nNodes 2 localRanks 2 localRank " + gpu + " MNNVL 0\n";
    if (rank == 0) text += head + "Channel 00/01 : " + ring + "\n";
  }
  return text;
}

TEST(NcclCheck, TakesTheNodesOfRanksFromTheLog) {
  // Leaves each node once, as NCCL does.
  const NcclFindings all = findings(log_of_dealt_ranks("0 2 1 3"));
  EXPECT_EQ(differing(all), std::vector<std::string>{});
  EXPECT_EQ(all.same, 1U);
  EXPECT_EQ(all.not_compared, 0U);
  EXPECT_EQ(differing(findings(log_of_dealt_ranks("0 1 2 3"))), std::vector<std::string>{"rings"});
}

std::string call_of(int count, const char* comm = "0x1") {
  return "a:1:1 [3] NCCL INFO AllReduce: opCount 1 sendbuff 1 recvbuff 2 count " +
         std::to_string(count) + " datatype 7 op 0 root 0 comm " + comm + " [nranks=2] stream 3\n";
}
std::string choice_of(int bytes, int first, int last) {
  return "a:1:1 [3] NCCL INFO AllReduce: " + std::to_string(bytes) +
         " Bytes -> Algo RING proto LL channel{Lo..Hi}={" + std::to_string(first) + ".." +
         std::to_string(last) + "}\n";
}

// A program prints a line's beginning, and NCCL goes on there; two processes share a line. A clock
// that looks like host:pid:tid may precede it all.
TEST(NcclCheck, FindsRecordsBehindOtherTextOfTheirLine) {
  const auto without_end = [](std::string line) { return line.substr(0, line.size() - 1); };
  const std::string call = call_of(1024), choice = choice_of(4096, 0, 0);
  const std::string other = "b" + call.substr(1);  // rank 1's, which chooses nothing
  const NcclFindings plain = findings(kTwoNodes + call + choice);
  ASSERT_EQ(plain.not_compared, 0U);
  for (const std::string& text :
       {"   8388608   float   sum  -1" + call + choice, without_end(call) + other + choice,
        without_end(other) + call + choice, call + without_end(other) + choice,
        call + without_end(choice) + other, without_end(call) + without_end(other) + choice,
        "12:34:56 " + call + "12:34:56 " + choice,
        // A process that has not logged before.
        call + without_end(choice) + "c:9:9" + other.substr(5)}) {
    const NcclFindings all = findings(kTwoNodes + text);
    EXPECT_EQ(all.same, plain.same) << text;
    EXPECT_EQ(all.differ, 0U) << text;
    EXPECT_EQ(all.not_compared, 0U) << text;
  }
}

// Of a record that another one follows on its line, the end may be missing.
TEST(NcclCheck, LeavesOutWhatAnotherRecordMayHaveCutOff) {
  const std::string other = "b" + call_of(1024).substr(1);
  for (const char* cut :
       {"Ring 01 : 1 -> 0 -> 1", "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->", "Pattern 4, crossNic",
        "AllReduce: opCount 1 sendbuff 1 recvbuff 2 count 10", "Channel 00/04 :  0",
        "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..", "16 coll channels, 1",
        "ncclCommInitRank comm 0x1 rank 0 nr"}) {
    NcclLog log;
    read_nccl_log(kTwoNodes + ("a:1:7 [3] NCCL INFO " + std::string(cut)) + other, "nccl.log", log);
    EXPECT_EQ(log.left_out.at("lines of NCCL that another one may have cut off"), 1U) << cut;
    EXPECT_EQ(log.comms.size(), 1U);
    EXPECT_EQ(log.comms[0].rings.size(), 2U);
    EXPECT_TRUE(log.groups.empty());
  }
}

// NCCL logs each variable of its environment, and ends the line with a full stop where the value
// is a number: the stop is no part of the value.
TEST(NcclCheck, TakesTheEnvironmentFromTheLog) {
  const std::string line = "h:1:1 [0] NCCL INFO NCCL_MAX_NCHANNELS set by environment to 4.\n";
  NcclLog log;
  read_nccl_log(
      "h:1:1 [0] NCCL INFO NCCL_ALGO set by environment to ^tree\n"
      "h:1:1 [0] NCCL INFO NCCL_HOSTID set by environment to node0\n" +
          line + line,
      "a.log", log);
  EXPECT_EQ(log.environment, (Environment{{"NCCL_ALGO", "^tree"}, {"NCCL_MAX_NCHANNELS", "4"}}));
  EXPECT_THAT([&] { read_nccl_log(replaced(line, "4", "5"), "b.log", log); },
              ::testing::ThrowsMessage<Error>(HasSubstr(
                  "b.log:1:1: NCCL_MAX_NCHANNELS is '5' here and '4' before; give logs of one "
                  "environment")));
}

TEST(NcclCheck, PlansTheCallsOfAGroupTogether) {
  const std::string call = call_of(1024), alone = choice_of(4096, 0, 0);  // LL: 32 KiB, 1 channel
  EXPECT_EQ(differing(findings(kTwoNodes + call + alone + call + alone)),
            std::vector<std::string>{});
  const NcclFindings group =
      findings(kTwoNodes + call + call + alone + choice_of(4096, 1, 1) + call + alone);
  EXPECT_EQ(differing(group), std::vector<std::string>{});
  ASSERT_EQ(group.comms[0].calls.size(), 2U);
  EXPECT_EQ(group.comms[0].calls[1].what, "group of 2, first allreduce of 1,024 float sum");
  EXPECT_EQ(group.comms[0].calls[1].here, "2 plans");

  const NcclFindings other = findings(kTwoNodes + call + call + alone + alone);
  ASSERT_EQ(differing(other).size(), 1U);
  EXPECT_EQ(other.comms[0].calls[0].log, "plan 2: allreduce of 4,096 B, ring/LL channels 0..0");
  EXPECT_EQ(other.comms[0].calls[0].here, "plan 2: allreduce of 4,096 B, ring/LL channels 1..1");
}

TEST(NcclCheck, ComparesNoGroupThatIsNotWhole) {
  const std::string call = call_of(1024), choice = choice_of(4096, 0, 0);
  const NcclFindings cut = findings(kTwoNodes + call + call_of(2048) + choice);
  EXPECT_EQ(cut.not_compared, 1U);
  EXPECT_THAT(cut.comms[0].calls[0].note, HasSubstr("no choice for some"));
  // NCCL logs no choice for a call without elements.
  EXPECT_EQ(findings(kTwoNodes + call_of(0) + call + choice).not_compared, 0U);
}

TEST(NcclCheck, SaysWhyACommunicatorIsNotCompared) {
  const std::string uneven =
      replaced(log_of_512(), "nNodes 64 localRanks 8", "nNodes 65 localRanks 8");
  const NcclFindings all = findings(uneven);
  EXPECT_EQ(all.same + all.differ, 0U);
  EXPECT_THAT(all.comms[0].communicator[0].note, HasSubstr("log INIT of all ranks"));
}

std::string error(const std::string& text) {
  try {
    NcclLog log;
    read_nccl_log(text, "nccl.log", log);
  } catch (const Error& refused) {
    return refused.what();
  }
  return "none";
}

TEST(NcclCheck, RefusesDamagedLines) {
  EXPECT_THAT(error(replaced(log_of_512(), "rank 0 nranks 512", "rank 512 nranks 512")),
              HasSubstr("nccl.log:3:1: rank is no number from 0 to 511"));
  EXPECT_THAT(error(replaced(log_of_512(), " 0   7   6", " 0   7   x")),
              HasSubstr("nccl.log:7:1: 'x' is no rank of 512"));
  EXPECT_THAT(error(replaced(log_of_512(), "1/256/-1->0", "1/999/-1->0")),
              HasSubstr("a tree's child is no rank"));
  EXPECT_THAT(error(replaced(log_of_512(), "datatype 7", "datatype 12")),
              HasSubstr("datatype is no number from 0 to 11"));
}

// ---- Results ----

LoadedJob job_of_two_stages() {
  return test::load_text(
      "schema: ghostrank/job/1\nmodel: llama3-8b\ndevice: {base: h100-sxm, memory_bytes: 0}\n"
      "cluster: {nodes: 2, gpus_per_node: 8, nics_per_node: 8}\n"
      "collectives: {library: nccl-2.28}\n"
      "parallel: {framework: megatron, tp: 8, pp: 2, micro_batch: 1, global_batch: 2}\n");
}

// A result in which `job` was played as it is planned.
StoredResult result_of(const LoadedJob& job) {
  const TrafficPlan traffic = plan_traffic(job.spec, plan_workload(job.spec));
  StoredResult result;
  result.ranks = 16;
  for (const CollectiveTraffic& c : traffic.collectives)
    result.collectives.push_back({c.op, c.group, c.algorithm, static_cast<double>(c.calls),
                                  static_cast<double>(c.buffer_bytes)});
  result.messages = static_cast<double>(traffic.wire_messages);
  result.wire_bytes = static_cast<double>(traffic.wire_bytes);
  return result;
}

TEST(NcclCheck, FindsAResultAsItsJobIsPlanned) {
  const LoadedJob job = job_of_two_stages();
  const NcclFindings all = check_nccl_result(result_of(job), job);
  EXPECT_EQ(differing(all), std::vector<std::string>{});
  EXPECT_GE(all.same, 5U);
  EXPECT_EQ(all.not_compared, 0U);
}

TEST(NcclCheck, FindsWhatAResultPlayedOtherwise) {
  const LoadedJob job = job_of_two_stages();
  const StoredResult good = result_of(job);
  for (std::size_t i = 0; i < good.collectives.size(); ++i) {
    const std::string what = good.collectives[i].op + " in " + good.collectives[i].group;
    StoredResult algorithm = good, calls = good, missing = good;
    algorithm.collectives[i].algorithm = "ring/LL128x";
    calls.collectives[i].calls += 1;
    missing.collectives.erase(missing.collectives.begin() + static_cast<std::ptrdiff_t>(i));
    for (const StoredResult& bad : {algorithm, calls, missing})
      EXPECT_EQ(differing(check_nccl_result(bad, job)), std::vector<std::string>{what});
  }
  StoredResult messages = good;
  messages.messages -= 1;
  EXPECT_EQ(differing(check_nccl_result(messages, job)),
            std::vector<std::string>{"messages between nodes"});
}

TEST(NcclCheck, RefusesAResultOfAnotherLibrary) {
  LoadedJob job = job_of_two_stages();
  job.spec.collectives.library = "generic";
  EXPECT_THROW(check_nccl_result({}, job), Error);
}

TEST(NcclCheck, RefusesVersionsThatAreNotPlayed) {
  EXPECT_EQ(nccl_library_of("2.28.3"), "nccl-2.28");
  EXPECT_EQ(nccl_library_of("2.29.7"), "nccl-2.30");
  for (const char* version : {"2.3.28", "2.27.7", "2.31.2", "2.280.1"})
    EXPECT_THROW(nccl_library_of(version), Error) << version;
}

}  // namespace
}  // namespace ghostrank
