// Chakra: the wire format, the meaning of nodes, and refusals.
#include <gtest/gtest.h>

#include "profiles/trace/readers/chakra_file.h"
#include "profiles/workload/workload_check.h"
#include "tests/trace/traces.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

using test::all_reduce;
using test::chakra;
using test::ChakraText;
using test::compute;
using test::Folder;
using test::receive;
using test::send;

class Chakra : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_chakra()) GTEST_SKIP() << "built without protobuf";
  }

  // The error for a trace of one rank, without its folder.
  std::string refused(const std::string& text) {
    folder.write("t.0.et", text);
    return test::error_in(folder, [&] { test::played({folder.path("t.0.et")}, 4); });
  }

  Folder folder;
};

TEST_F(Chakra, FanOutRunsSideBySideAndJoins) {
  const std::string groups = folder.write("groups.json", R"({"a": [0, 1], "b": [0, 1]})");
  std::vector<std::string> files{groups};
  for (int rank = 0; rank < 2; ++rank)
    files.push_back(folder.write(
        "t." + std::to_string(rank) + ".et",
        chakra({compute(1, 5, {}), all_reduce(2, 100, {1}, "a"), all_reduce(3, 200, {1}, "b"),
                compute(4, 7, {1}), compute(5, 1, {2, 3})})));
  const Replay replay = test::played(files);
  EXPECT_EQ(replay.workload.roles.size(), 1U) << "both ranks do the same";
  EXPECT_EQ(test::program_of(replay.workload, 1),
            "compute:\ncompute 5000000 n1\nrecord 0\nrecord 1\ncompute 7000000 n4\nwait 2\nwait 3\n"
            "compute 1000000 n5\n"
            "a:\nwait 0\nallreduce a uint8 100 n2\nrecord 2\n"
            "b:\nwait 1\nallreduce b uint8 200 n3\nrecord 3\n");
}

TEST_F(Chakra, SizesAreThoseOfAstraSim) {
  const auto coll = [](std::uint64_t id, std::uint64_t type) {
    return ChakraText{id, 7, 0, {}, {{"comm_type", type}, {"comm_size", 400}}};
  };
  folder.write("t.0.et", chakra({coll(1, 2), coll(2, 7), coll(3, 6), coll(4, 9)}));
  EXPECT_EQ(test::program_of(test::played({folder.path("t.0.et")}, 4).workload, 3),
            "compute:\n"
            "world:\nall_gather world uint8 400 n1\nreduce_scatter world uint8 100 n2\n"
            "all_to_all world uint8 100 n3\nbarrier world uint8 0 n4\n");
}

// Types as PyTorch's converter writes them. What is none, or does not divide the size, is bytes.
TEST_F(Chakra, ElementsHaveTheWidthOfTheFirstTensor) {
  std::vector<ChakraText> calls;
  for (const char* types :
       {"['Tensor(float)']", "['Tensor(long int)']", R"(["GenericList[Tensor(c10::Half)]","Int"])",
        "['Tensor(unsigned char)']", "['Tensor(quaternion)']", "['Int']", "['Tensor("}) {
    calls.push_back(all_reduce(calls.size(), 400, {}));
    calls.back().types = types;
  }
  calls.push_back(all_reduce(calls.size(), 401, {}));
  calls.back().types = "['Tensor(float)']";
  folder.write("t.0.et", chakra(calls));
  EXPECT_EQ(test::program_of(test::played({folder.path("t.0.et")}, 2).workload, 0),
            "compute:\n"
            "world:\nallreduce world float32 100 n0\nallreduce world int64 50 n1\n"
            "allreduce world bfloat16 200 n2\nallreduce world uint8 400 n3\n"
            "allreduce world uint8 400 n4\nallreduce world uint8 400 n5\n"
            "allreduce world uint8 400 n6\nallreduce world uint8 401 n7\n");
}

// Rank 1 takes the messages of two communicators in the other order.
TEST_F(Chakra, MessagesOfCommunicatorsAreMatchedByThem) {
  const auto message = [](bool sends, std::uint64_t id, std::uint64_t bytes, const char* group) {
    ChakraText out = sends ? send(id, 0, 1, 0, {}) : receive(id, 0, 1, 0, {});
    out.attributes[2].second = bytes;
    out.group = group;
    return out;
  };
  for (const bool named : {true, false}) {
    std::vector<std::string> files;
    if (named) files.push_back(folder.write("groups.json", R"({"a": [0, 1], "b": [0, 1]})"));
    for (const bool sends : {true, false}) {
      const bool swapped = !sends && named;
      files.push_back(
          folder.write(sends ? "t.0.et" : "t.1.et",
                       chakra({message(sends, 1, swapped ? 40 : 64, swapped ? "b" : "a"),
                               message(sends, 2, swapped ? 64 : 40, swapped ? "a" : "b")})));
    }
    const Trace trace = import_trace(files, "", 0);
    EXPECT_EQ(trace.given[0].events[1].group == kNoIndex, !named) << "else by tag alone";
    check_workload(replay(trace, {2, {}}).workload);
  }
}

TEST_F(Chakra, MessagesThatOneEndNamesAreMatchedByTheirTag) {
  folder.write("groups.json", R"({"a": [0, 1]})");
  ChakraText named = send(1, 0, 1, 0, {});
  named.group = "a";
  folder.write("t.0.et", chakra({named}));
  folder.write("t.1.et", chakra({receive(1, 0, 1, 0, {})}));
  check_workload(
      test::played({folder.path("groups.json"), folder.path("t.0.et"), folder.path("t.1.et")}, 2)
          .workload);
}

// PyTorch's other ranks have no tensor there, and the types of a call must agree.
TEST_F(Chakra, ScattersAreBytesBecauseOnlyTheRootHasInputs) {
  for (const int rank : {0, 1}) {
    ChakraText scatter = all_reduce(1, 400, {});
    scatter.attributes[0].second = 4;
    scatter.types = rank == 0 ? "['GenericList[Tensor(float)]']" : "['GenericList[]']";
    folder.write("t." + std::to_string(rank) + ".et", chakra({scatter}));
  }
  check_workload(test::played({folder.path("t.0.et"), folder.path("t.1.et")}, 2).workload);
}

TEST_F(Chakra, CollectivesOfTheHostGiveTheirTimeOnly) {
  ChakraText host = all_reduce(1, 400, {});
  host.host = true;
  host.micros = 3;
  folder.write("t.0.et", chakra({host, all_reduce(2, 400, {1})}));
  const Trace trace = import_trace({folder.path("t.0.et")}, "", 0);
  EXPECT_EQ(trace.used, 1U);
  EXPECT_EQ(trace.left_out.at("collectives of the host, of which only the time is used"), 1U);
  EXPECT_EQ(summary_of(trace, 2).ops, (std::map<std::string, std::uint64_t>{{"allreduce", 1}}));
  EXPECT_EQ(test::program_of(replay(trace, {2, {}}).workload, 0),
            "host:\ncompute 3000000 n1\nrecord 0\nworld:\nwait 0\nallreduce world uint8 400 n2\n");
}

// A trace with process groups as a writer has them.
std::string with_groups(const std::string& groups) {
  const std::string init =
      test::field(1, std::uint64_t{9}) + test::field(2, std::string("## process_group:init ##")) +
      test::field(3, std::uint64_t{1}) + test::field(8, test::field(1, groups));
  return chakra({}) + test::message(init) + all_reduce(1, 8, {}, "7").text();
}

// As they are, in a JSON list of one string, and as Chakra's converter writes that list: by
// Python's str().
TEST_F(Chakra, ProcessGroupsAreReadFromTheTraceItself) {
  for (const std::string groups :
       {R"([{"pg_name": "7", "pg_desc": "it's \"7\"", "ranks": [0, 2]}])",
        R"(["[{\"pg_name\": \"7\", \"ranks\": [0, 2]}]"])",
        R"(['[{"pg_name": "7", "ranks": [0, 2]}]'])",
        R"(['[{"pg_name": "7", "pg_desc": "it\'s \\"7\\"", "ranks": [0, 2]}]'])"}) {
    for (const int rank : {0, 2})
      folder.write("t." + std::to_string(rank) + ".et", with_groups(groups));
    const Workload workload = test::played({folder.path("t.*.et")}, 4).workload;
    ASSERT_EQ(workload.groups.size(), 2U);
    EXPECT_EQ(workload.groups[0].members, world_ranks({0, 2}));
    EXPECT_EQ(workload.groups[1].members, world_ranks({1, 3})) << "moved along";
  }
  for (const std::string groups : {"['", "[{'pg_name': '7'}]", R"(['[{"pg_name": "7"'])"})
    EXPECT_EQ(refused(with_groups(groups)),
              "t.0.et: node 9: its process groups are no JSON; convert the trace again");
  EXPECT_EQ(refused(with_groups(R"([{"pg_name": "7", "ranks": "[0, 2]"}])")),
            "t.0.et: node 9: a process group whose ranks are no list");
}

// Some writers name both a communicator, by a float, and the dimensions of their topology.
TEST_F(Chakra, ANamedCommunicatorNeedsNoDimensions) {
  const auto of = [](const std::string& group) {
    ChakraText node = all_reduce(1, 64, {}, group);
    node.dimensions = {false, true};
    return chakra({node});
  };
  const std::string groups = folder.write("groups.json", R"({"3": [0, 2]})");
  const Trace trace = import_trace({groups, folder.write("t.0.et", of("3.0"))}, "", 0);
  EXPECT_EQ(summary_of(trace, 4).group_bytes, (std::map<std::string, std::uint64_t>{{"3", 64}}));
  EXPECT_EQ(refused(of("0")),
            "t.0.et: node 1: involved_dim leaves out dimensions of a topology that the trace does "
            "not have; write the communicators with pg_name");
}

TEST_F(Chakra, ControlThatFormsCyclesIsLeftOut) {
  ChakraText first = compute(1, 5, {});
  first.control = {2};
  folder.write("t.0.et", chakra({first, compute(2, 7, {1})}));
  const Trace trace = import_trace({folder.path("t.0.et")}, "", 0);
  EXPECT_EQ(trace.left_out.at("control dependencies that form cycles"), 1U);
  EXPECT_EQ(test::program_of(replay(trace, {}).workload, 0),
            "compute:\ncompute 5000000 n1\ncompute 7000000 n2\n");
}

TEST_F(Chakra, DamageIsNamedWithItsPlace) {
  const std::string whole = chakra({compute(1, 5, {}), compute(2, 5, {1})});
  EXPECT_EQ(refused(whole.substr(0, whole.size() - 3)),
            "t.0.et: byte 35: a message of 29 bytes, but 26 are left; the file is cut off, or no "
            "Chakra trace");
  EXPECT_EQ(
      refused(chakra({compute(1, 5, {2}), compute(2, 5, {1})})),
      "t.0.et: node 1: 'n1' depends on itself through others; a trace has no cycles, convert it "
      "again");
  EXPECT_EQ(refused(chakra({compute(1, 5, {}), compute(1, 5, {})})),
            "t.0.et: node 1: a second node of this id; ids are unique");
  EXPECT_EQ(
      refused(chakra({}) +
              test::message(test::field(1, std::uint64_t{3}) + test::field(13, std::uint64_t{1}))),
      "t.0.et: byte 11: field 13 of wire type 0 is none of Chakra 0.0.4 or 1.0.0; convert older "
      "traces first");
  EXPECT_EQ(refused(test::message(test::field(1, std::string("0.0.1")))),
            "t.0.et: byte 1: schema version '0.0.1' is not read; versions 0.0.4 and 1.0.0 are: "
            "convert the trace");
}

TEST_F(Chakra, WhatDoesNotFitTogetherIsNamed) {
  EXPECT_EQ(
      refused(chakra({all_reduce(1, 8, {}, "7")})),
      "t.0.et: node 1: communicator '7' is defined nowhere; give the file with the communicators, "
      "too (comm_groups.json)");
  EXPECT_EQ(refused(chakra({send(1, 0, 9, 0, {})})),
            "t.0.et: the trace names 10 ranks, but there are to be 4; "
            "they must be as many");
  EXPECT_EQ(
      refused(chakra({{1, 4, 0, {}, {{"num_ops", 1'000'000}}}})),
      "t.0.et: node 1: computations are given in FLOPs, not in time; name the device that does "
      "them, as in device: h100-sxm (profile import: --device h100-sxm)");
  folder.write("u.0.et", chakra({all_reduce(1, 8, {})}));
  folder.write("u.1.et", chakra({all_reduce(1, 16, {})}));
  EXPECT_EQ(test::error_in(folder, [&] { test::played({folder.path("u.*.et")}); }),
            "u.1.et: node 1: call 1 of communicator of all ranks is allreduce of 16 bytes but "
            "u.0.et: node 1 has allreduce of 8 bytes; give the traces of one step of one job");
  std::string groups = folder.write("groups.json", R"({"a": [1, 0]})");
  for (const std::uint64_t rank : {0, 1}) {
    ChakraText broadcast = all_reduce(1, 8, {}, "a");
    broadcast.attributes = {{"comm_type", 5}, {"comm_size", 8}, {"root_rank", rank}};
    folder.write("u." + std::to_string(rank) + ".et", chakra({broadcast}));
  }
  EXPECT_EQ(test::error_in(folder,
                           [&] {
                             test::played({groups, folder.path("u.*.et")});
                           }),
            "u.1.et: node 1: call 1 of communicator 'a' is broadcast of 8 bytes, root rank 0 but "
            "u.0.et: node 1 has broadcast of 8 bytes, root rank 1; give the traces of one step of "
            "one job");
  folder.write("u.0.et", chakra({all_reduce(1, 8, {}, "a")}));
  groups = folder.write("groups.json", R"({"a": "[0, 1]"})");
  EXPECT_EQ(test::error_in(folder,
                           [&] {
                             test::played({groups, folder.path("u.0.et")}, 4);
                           }),
            "groups.json:1:1: communicator 'a' is no list of ranks, as [0, 1] is");
}

TEST_F(Chakra, ATruncatedGzipIsNamedWithItsPlace) {
  const std::string whole =
      test::read_file(GHOSTRANK_SOURCE_DIR "/tests/fuzz/corpus/trace_chakra/gzip");
  EXPECT_EQ(refused(whole.substr(0, whole.size() / 2)).substr(0, 13), "t.0.et: byte ");
}

}  // namespace
}  // namespace ghostrank
