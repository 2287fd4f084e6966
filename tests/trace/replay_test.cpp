// From a trace to programs: the order of events, ranks without a trace, messages that overtake each
// other; and `trace` in a job.
#include <algorithm>

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "profiles/trace/readers/chakra_file.h"
#include "profiles/workload/workload_check.h"
#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

using test::all_reduce;
using test::chakra;
using test::compute;
using test::Folder;
using test::receive;
using test::send;

class ReplayOfTraces : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_chakra()) GTEST_SKIP() << "built without protobuf";
  }
  Replay play(const std::vector<std::string>& ranks, int size = 0) {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      folder.write("t." + std::to_string(r) + ".et", ranks[r]);
    Replay out = test::played({folder.path("t.*.et")}, size);
    check_workload(out.workload);
    return out;
  }
  Folder folder;
};

TEST_F(ReplayOfTraces, TagsThatOvertakeGetLanesOfTheirOwn) {
  // Rank 0 sends one tag, then another; rank 1 receives them in the other order.
  for (const std::uint64_t other : {std::uint64_t{2}, 1 + (std::uint64_t{1} << 32)}) {
    const Replay replay = play({chakra({send(1, 0, 1, 1, {}), send(2, 0, 1, other, {1})}),
                                chakra({receive(1, 0, 1, other, {}), receive(2, 0, 1, 1, {1})})});
    EXPECT_EQ(test::program_of(replay.workload, 0),
              "compute:\np2p 0:\nsend? p2p +1 uint8 64 n1\nsend? p2p.1 +1 uint8 64 n2\n");
    EXPECT_EQ(test::program_of(replay.workload, 1),
              "compute:\np2p 0:\nrecv? p2p.1 +1 uint8 64 n1\nrecv? p2p +1 uint8 64 n2\n");
  }
}

TEST_F(ReplayOfTraces, MessagesOfAChainShareAStreamAndOthersDoNot) {
  const Replay replay =
      play({chakra({send(1, 0, 1, 0, {}), receive(2, 1, 0, 0, {1}), send(3, 0, 1, 9, {})}),
            chakra({receive(1, 0, 1, 0, {}), send(2, 1, 0, 0, {1}), receive(3, 0, 1, 9, {})})});
  EXPECT_EQ(test::program_of(replay.workload, 0),
            "compute:\np2p 0:\nsend? p2p +1 uint8 64 n1\nrecv? p2p +1 uint8 64 n2\n"
            "p2p 1:\nsend? p2p.1 +1 uint8 64 n3\n");
}

TEST_F(ReplayOfTraces, AnEdgeThatOthersImplyIsNoWait) {
  const Replay replay = play({chakra({compute(1, 5, {}), all_reduce(2, 8, {1}), compute(3, 5, {2}),
                                      all_reduce(4, 8, {1, 2, 3}), compute(5, 5, {1, 2, 4})})},
                             2);
  EXPECT_EQ(
      test::program_of(replay.workload, 0),
      "compute:\ncompute 5000000 n1\nrecord 0\nwait 1\ncompute 5000000 n3\nrecord 0\nwait 1\n"
      "compute 5000000 n5\n"
      "world:\nwait 0\nallreduce world uint8 8 n2\nrecord 1\nwait 0\nallreduce world uint8 8 n4\n"
      "record 1\n");
}

TEST_F(ReplayOfTraces, CallsWithoutARootHaveNone) {
  test::ChakraText call = all_reduce(1, 8, {});
  call.attributes.emplace_back("root_rank", 1);
  EXPECT_EQ(test::program_of(play({chakra({call})}, 2).workload, 0),
            "compute:\nworld:\nallreduce world uint8 8 n1\n");
}

TEST_F(ReplayOfTraces, AnEdgeThatAnotherStreamImpliesIsNoWait) {
  const std::string groups = folder.write("groups.json", R"({"a": [0, 1], "b": [0, 1]})");
  const std::string rank = folder.write(
      "t.0.et",
      chakra({compute(1, 5, {}), all_reduce(2, 8, {1}, "a"), all_reduce(3, 8, {1, 2}, "b")}));
  EXPECT_EQ(test::program_of(test::played({groups, rank}).workload, 0),
            "compute:\ncompute 5000000 n1\nrecord 0\na:\nwait 0\nallreduce a uint8 8 n2\nrecord 1\n"
            "b:\nwait 1\nallreduce b uint8 8 n3\n");
}

TEST_F(ReplayOfTraces, RanksWithoutATracePlayAsOneThatSharesACommunicator) {
  const std::string groups = folder.write("groups.json", R"({"dp0": [0, 2], "dp1": [1, 3]})");
  folder.write("t.0.et", chakra({compute(1, 5, {}), all_reduce(2, 64, {1}, "dp0")}));
  folder.write("t.1.et", chakra({compute(1, 9, {}), all_reduce(2, 32, {1}, "dp1")}));
  const Replay replay = test::played({groups, folder.path("t.*.et")});
  EXPECT_EQ(replay.workload.role_of.rows(), (std::vector<std::uint16_t>{0, 1, 0, 1}));
  EXPECT_EQ(replay.notes,
            (std::vector<std::string>{"ranks 2 have no trace of their own and play as rank 0",
                                      "ranks 3 have no trace of their own and play as rank 1"}));
  check_workload(replay.workload);
}

// The stage of rank 1 would be played as that of rank 0, and their messages match all the same.
TEST_F(ReplayOfTraces, StagesWithoutATraceAreNamed) {
  const Replay replay = play({chakra({send(1, 0, 1, 0, {}), receive(2, 1, 0, 0, {1})})}, 2);
  EXPECT_EQ(replay.notes,
            (std::vector<std::string>{
                "ranks 1 have no trace of their own and play as rank 0",
                "ranks 1 exchange messages with ranks that have a trace and have none: if they are "
                "another stage of a pipeline, whose work is another, give a trace of each stage"}));
}

// Two stages of four ranks, of each the first. Rank 7 shares no communicator with either.
TEST_F(ReplayOfTraces, CommunicatorsThatTheFileNamesAreTakenFromIt) {
  const std::string groups = folder.write("groups.json", R"({
      "mp.0": [0, 1, 4, 5], "mp.1": [2, 3, 6, 7], "dp.0": [0, 2], "dp.1": [1, 3], "dp.2": [4, 6],
      "dp.3": [5, 7], "pp.0": [0, 4], "pp.1": [1, 5], "pp.2": [2, 6], "pp.3": [3, 7]})");
  for (const int rank : {0, 4})
    folder.write("t." + std::to_string(rank) + ".et",
                 chakra({compute(1, 5 + rank, {}), all_reduce(2, 8, {1}, "mp.0"),
                         all_reduce(3, 16, {2}, "dp." + std::to_string(rank / 2)),
                         all_reduce(4, 32, {3}, "pp.0")}));
  const Replay replay = test::played({groups, folder.path("t.*.et")});
  check_workload(replay.workload);
  EXPECT_EQ(replay.workload.role_of.rows(), (std::vector<std::uint16_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(replay.workload.groups.size(), 10u);
  EXPECT_EQ(replay.notes.size(), 2u) << "none was inferred";
}

TEST_F(ReplayOfTraces, CommunicatorsThatDoNotTileAreRefused) {
  const std::string groups = folder.write("groups.json", R"({"a": [0, 1, 3]})");
  const std::string rank = folder.write("t.0.et", chakra({all_reduce(1, 64, {}, "a")}));
  EXPECT_EQ(
      test::error_in(folder,
                     [&] {
                       test::played({groups, rank}, 6);
                     }),
      "t.0.et: communicator a has no even stride, so those of other ranks cannot be inferred; "
      "give the traces of all ranks");
}

TEST(ReplayOfMembers, RefusesRanksBelowZero) {
  Trace trace;
  trace.given.resize(1);
  trace.given[0].file = "t";
  trace.groups.push_back({"dp", {WorldRank(0), WorldRank(-5)}});
  EXPECT_EQ(test::error_of([&] {
              replay(trace, {2, {}});
            }),
            "t: communicator 'dp' has rank -5 but the job 2 ranks");
  trace.groups.clear();
  trace.given[0].also = {WorldRank(-5)};
  EXPECT_EQ(test::error_of([&] {
              replay(trace, {2, {}});
            }),
            "t: a trace of rank -5 in a job of 2 ranks; give the traces of one job");
}

// Programs of a job of two ranks, in GOAL; rank 1 receives what rank 0 sends, in its order.
std::string programs_of_goal(const std::string& sends, const std::string& receives) {
  const Folder folder;
  const Workload workload =
      test::played({folder.write("g.goal", "num_ranks 2\nrank 0 {\n" + sends + "}\nrank 1 {\n" +
                                               receives + "}\n")})
          .workload;
  check_workload(workload);
  return test::program_of(workload, 0) + test::program_of(workload, 1);
}

TEST(ReplayOfMessages, ThoseWithoutAnOrderKeepTheirTraceTagsApart) {
  // The send of tag 2 does not wait for the computation, nor does its receive for that of tag 1.
  EXPECT_EQ(programs_of_goal(
                "a: calc 9\nb: send 64b to 1 tag 1\nc: send 64b to 1 tag 2\nb requires a\n",
                "a: recv 64b from 0 tag 1\nb: recv 64b from 0 tag 2\nc: calc 9\nc requires b\n"),
            "compute:\ncompute 9000 calc\nrecord 0\n"
            "p2p 0:\nwait 0\nsend? p2p +1 uint8 64 send\n"
            "p2p 1:\nsend? p2p.1 +1 uint8 64 send\n"
            "compute:\nwait 0\ncompute 9000 calc\n"
            "p2p 0:\nrecv? p2p +1 uint8 64 recv\n"
            "p2p 1:\nrecv? p2p.1 +1 uint8 64 recv\nrecord 0\n");
}

TEST(ReplayOfMessages, ThoseOfOneTagAndSizeShareALaneInAnyOrderAndOtherSizesDoNot) {
  EXPECT_EQ(programs_of_goal("send 64b to 1\nsend 64b to 1\nsend 32b to 1\n",
                             "recv 64b from 0\nrecv 64b from 0\nrecv 32b from 0\n"),
            "compute:\np2p 0:\nsend? p2p +1 uint8 64 send\nsend? p2p +1 uint8 64 send\n"
            "send? p2p.1 +1 uint8 32 send\n"
            "compute:\np2p 0:\nrecv? p2p +1 uint8 64 recv\np2p 1:\nrecv? p2p +1 uint8 64 recv\n"
            "p2p 2:\nrecv? p2p.1 +1 uint8 32 recv\n");
}

TEST(ReplayOfMessages, OneThatFollowsAllOfALaneAtBothEndsSharesIt) {
  const std::string receives =
      "a: recv 64b from 0 tag 1\nb: recv 64b from 0 tag 1\nc: recv 32b from 0 tag 2\n"
      "c requires a\n";
  const std::string sends =
      "a: send 64b to 1 tag 1\nb: send 64b to 1 tag 1\nc: send 32b to 1 tag 2\n"
      "c requires a\nc requires b\n";
  EXPECT_NE(programs_of_goal(sends, receives).find("p2p.1"), std::string::npos);
  EXPECT_EQ(programs_of_goal(sends, receives + "c requires b\n").find("p2p.1"), std::string::npos);
}

// Of streams that are free at one moment the engine starts the one of the lower number first. When
// both sends may start, the stream of the receive is free for the second one only.
TEST(ReplayOfMessages, StartAtOneMomentInTheOrderOfTheFile) {
  const std::string program = programs_of_goal(
      "x: recv 8b from 1 tag 1\na: calc 9\nb: send 64b to 1 tag 2\nc: calc 0\n"
      "d: send 16b to 1 tag 2\nb requires a\nc irequires b\nd requires a\nd requires x\n",
      "x: send 8b to 0 tag 1\nb: recv 64b from 0 tag 2\nd: recv 16b from 0 tag 2\n"
      "d requires b\n");
  EXPECT_EQ(program.substr(0, program.find("compute:", 1)),
            "compute:\ncompute 9000 calc\nrecord 0\n"
            "p2p 0:\nrecv? p2p +1 uint8 8 recv\nrecord 1\n"
            "p2p 1:\nwait 0\nsend? p2p +1 uint8 64 send\nwait 1\nsend? p2p +1 uint8 16 send\n");
}

TEST_F(ReplayOfTraces, MessagesWithoutAPartnerAndDeadlocksAreNamed) {
  EXPECT_EQ(
      test::error_in(folder,
                     [&] {
                       play({chakra({send(1, 0, 1, 5, {})}), chakra({compute(1, 1, {})})});
                     }),
      "t.0.et: node 1: rank 1 never receives this message (tag 5); give the traces of one step of "
      "one job");
  EXPECT_EQ(
      test::error_in(folder,
                     [&] {
                       play({chakra({receive(1, 1, 0, 0, {}), send(2, 0, 1, 0, {1})}),
                             chakra({receive(1, 0, 1, 0, {}), send(2, 1, 0, 0, {1})})});
                     }),
      "t.0.et: node 1: 'n1' of rank 0 and events of other ranks wait for each other for ever; give "
      "the traces of one step of one job");
}

TEST_F(ReplayOfTraces, AJobPlaysATraceAndSaysSo) {
  for (const char* rank : {"0", "1"})
    folder.write(std::string("run/t.") + rank + ".et",
                 chakra({compute(1, 5, {}), all_reduce(2, 64, {1})}));
  const std::string cluster = "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n";
  const LoadedJob job = load_job(folder.write("job.yaml", cluster + "trace: run/t.*.et\n"), {});
  EXPECT_EQ(plan_workload(job.spec).ranks, 2);
  ASSERT_FALSE(job.spec.notes.empty());
  EXPECT_EQ(
      job.spec.notes.front(),
      "trace (chakra): 4 events used; times in microseconds; every rank has a clock of its own");
  EXPECT_NE(job.config_json.find(folder.path("run/t.*.et")), std::string::npos)
      << "can be replayed";
  EXPECT_EQ(
      test::error_in(folder, [&] { load_job(folder.write("job.yaml", "trace: run/\n"), {}); }),
      "job.yaml:1:8: the trace has 2 ranks but the cluster 8 GPUs; they must be as many "
      "(cluster.nodes, cluster.gpus_per_node)");
  EXPECT_EQ(test::error_in(
                folder,
                [&] {
                  load_job(folder.write("job.yaml", cluster + "trace: run/\nmodel: gpt2-xl\n"), {});
                }),
            "job.yaml:2:8: a job plays a trace or a model; leave one of them out");
}

TEST_F(ReplayOfTraces, ADeviceBesideTimesIsSaidToHaveNoEffectInEachJob) {
  const std::string note = "no effect on a trace that gives times and no FLOPs: device";
  const std::string cluster = "cluster: {nodes: 1, gpus_per_node: 1, nics_per_node: 1}\n",
                    device = "device: h100-sxm\n";
  const auto job = [&](const char* name, const std::string& text) {
    return folder.write(std::string(name) + ".yaml", cluster + text + "trace: " + name + ".et\n");
  };
  folder.write("timed.et", chakra({compute(1, 5, {})}));
  folder.write("counted.et", chakra({{1, 4, 0, {}, {{"num_ops", 1'000'000}}}}));
  const auto notes = [](const std::string& path) { return load_job(path, {}).spec.notes; };
  EXPECT_EQ(notes(job("timed", device)).back(), note);
  EXPECT_NE(notes(job("timed", "")).back(), note);
  EXPECT_NE(notes(job("counted", device)).back(), note);
  const std::string type = "precision: {parameters: bf16}\n";
  EXPECT_EQ(notes(job("timed", device + type)).back(), note + ", precision.parameters");
  EXPECT_EQ(notes(job("timed", type)).back(),
            "no effect on a trace that gives times and no FLOPs: precision.parameters");
  EXPECT_NE(notes(job("timed", "precision: {parameters: fp32}\n")).back(),
            "no effect on a trace that gives times and no FLOPs: precision.parameters");
  EXPECT_EQ(notes(job("counted", device + type)).back().find("no effect"), std::string::npos);
  job("timed", device);
  const auto both = notes(folder.write(
      "both.yaml",
      "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\njobs: [{name: a, file: "
      "timed.yaml, nodes: '0'}, {name: b, file: counted.yaml, nodes: '1'}]\n"));
  EXPECT_EQ(std::count(both.begin(), both.end(), "job a: " + note), 1);
  EXPECT_EQ(std::count(both.begin(), both.end(), "job b: " + note), 0);
}

TEST_F(ReplayOfTraces, OneTraceStandsForAsManyRanksAsTheClusterHas) {
  folder.write("t.0.et", chakra({compute(1, 5, {}), all_reduce(2, 64, {1})}));
  const LoadedJob job =
      load_job(folder.write("job.yaml", "cluster: {nodes: 4}\ntrace: t.0.et\n"), {});
  EXPECT_EQ(plan_workload(job.spec).groups.front().members.size(), 32U);
  EXPECT_EQ(job.spec.notes.back(),
            "trace: ranks 1-31 have no trace of their own and play as rank 0");
}

// As sends and receives of NCCL they would wait for room in its FIFOs.
TEST(ReplayOfMessages, ThoseOfGoalAreNoCallsOfALibrary) {
  const Folder folder;
  const std::string goal = folder.write(
      "two.goal",
      "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n");
  const auto algorithm = [&](const std::string& collectives) {
    const JobSpec spec = test::load_text(
                             "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                             "collectives: {library: " +
                             collectives + "}\ntrace: " + goal)
                             .spec;
    const bool noted = std::any_of(spec.notes.begin(), spec.notes.end(), [](const auto& note) {
      return note.starts_with("trace: messages are played as they are");
    });
    return spec.collectives.algorithm(Func::send_recv) + (noted ? ", noted" : "");
  };
  EXPECT_EQ(algorithm("nccl-2.28"), "generic/direct, noted");
  EXPECT_EQ(algorithm("nccl-2.28, send_recv: p2p"), "p2p");
  EXPECT_EQ(algorithm("generic"), "auto");
}

}  // namespace
}  // namespace ghostrank
