// NCCL's log against what is played here. The logs are written by hand, in the forms of NCCL's
// source: rings and trees after the published orders of an HGX H100, the choices after logs of real
// clusters (NVIDIA/nccl issue 1752: 64 nodes of 8). No log of a run of ours is among them.
#include "tools/nccl/nccl_check.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"

namespace ghostrank {
namespace {

using ::testing::HasSubstr;

std::string log_of_512() {
  std::ifstream file(GHOSTRANK_TRANSCRIPTS "/nccl.log");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
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

TEST(NcclCheck, ComparesNoCallThatWasPlannedInAGroup) {
  const std::string call =
      "a:1:1 [3] NCCL INFO AllReduce: opCount 1 sendbuff 1 recvbuff 2 count 1024 datatype 7 op 0 "
      "root 0 comm 0x1 [nranks=2] stream 3\n";
  const std::string choice =
      "a:1:1 [3] NCCL INFO AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}\n";
  EXPECT_EQ(findings(kTwoNodes + call + choice).not_compared, 0U);
  const NcclFindings grouped = findings(kTwoNodes + call + call + choice + choice);
  EXPECT_EQ(grouped.not_compared, 1U);
  EXPECT_THAT(grouped.comms[0].calls[0].note, HasSubstr("group"));
  EXPECT_EQ(grouped.comms[0].calls[0].times, 2U);
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

TEST(NcclCheck, RefusesVersionsThatAreNotPlayed) {
  EXPECT_EQ(nccl_library_of("2.28.3"), "nccl-2.28");
  EXPECT_EQ(nccl_library_of("2.29.7"), "nccl-2.30");
  for (const char* version : {"2.3.28", "2.27.7", "2.31.2", "2.280.1"})
    EXPECT_THROW(nccl_library_of(version), Error) << version;
}

}  // namespace
}  // namespace ghostrank
