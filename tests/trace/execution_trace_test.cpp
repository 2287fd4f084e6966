// PyTorch's execution traces: the meaning of their calls by version, and refusals.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/workload/workload_check.h"
#include "tests/trace/formats.h"

namespace ghostrank {
namespace {

using test::Formats;
using test::program_of;
using Counts64 = std::map<std::string, std::uint64_t>;

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

// Of PyTorch up to 2.1: groups are addresses, which differ between the processes, waits name none,
// and nothing but the calls says the ranks.
TEST_F(Formats, ExecutionTracesTellGroupsOfAddressesApart) {
  const auto call = [](int id, const std::string& inputs, const std::string& outputs) {
    return R"({"id": )" + std::to_string(id) + R"(, "name": "record_param_comms", "inputs": [)" +
           inputs + R"(], "outputs": [)" + outputs + "]}";
  };
  for (const int rank : {0, 1}) {
    const std::string own = std::to_string(rank),
                      group = rank == 0 ? "94594108284448" : "94428220485728";
    folder.write(
        "graph_" + own + ".json",
        R"({"schema": "1.0.1", "nodes": [)" +
            call(2,
                 R"([5, 6, 0, 4, 4, "cuda:0"], 7, )" + group + ", " + own +
                     R"(, "all_to_allv", [1, 3], [1, 3])",
                 R"([6, 7, 0, )" + std::string(rank == 0 ? "2" : "6") + R"(, 4, "cuda:0"])") +
            "," +
            call(3,
                 "[[8, 9, 0, 5, 4, \"cuda:0\"]], 8, " + group + ", " + own +
                     ", \"allreduce\", [], []",
                 "") +
            "," + call(4, "7, 0, " + own + ", \"wait\", [], []", "") + "]}");
  }
  const Trace trace = import_trace({folder.path("graph_*.json")}, "", 0);
  ASSERT_EQ(trace.given.size(), 2U);
  EXPECT_EQ(trace.given[1].rank, WorldRank(1));
  EXPECT_EQ(trace.groups.size(), 1U);
  EXPECT_TRUE(trace.left_out.empty());
  const Replay replay = ghostrank::replay(trace, {});
  check_workload(replay.workload);
  EXPECT_EQ(*replay.workload.counts.front(), (std::vector<std::uint64_t>{1, 3, 1, 3}));
}

// Of PyTorch 2.2: calls name the backend, whose group the definition names, and their size.
TEST_F(Formats, ExecutionTracesTakeGroupsOfBackends) {
  const std::string groups =
      R"([{\"pg_name\": \"7\", \"backend_id\": 82149104, \"ranks\": [], \"group_size\": 4},)"
      R"( {\"pg_name\": \"8\", \"backend_id\": 82149105, \"ranks\": [1, 3], \"group_size\": 2}])";
  const std::string file = folder.write("et.json", R"({"schema": "1.0.2-chakra.0.0.4", "nodes": [
        {"id": 2, "name": "## process_group:init ##", "inputs": {"values": [")" +
                                                       groups + R"("]}},
        {"id": 3, "name": "record_param_comms", "inputs": {"values":
          [[[8, 9, 0, 5, 4, "cuda:0"]], 1, 82149104, 3, "allreduce", [], [], 4]}},
        {"id": 4, "name": "record_param_comms", "inputs": {"values":
          [[[8, 9, 0, 7, 4, "cuda:0"]], 1, 82149105, 1, "allreduce", [], [], 2]}}]})");
  const Trace trace = import_trace({file}, "", 0);
  EXPECT_EQ(trace.given[0].rank, WorldRank(3));
  ASSERT_EQ(trace.groups.size(), 2U);
  EXPECT_EQ(trace.groups[0].name, "7");
  EXPECT_EQ(trace.groups[0].members.size(), 4U);
  EXPECT_EQ(trace.groups[1].name, "8");
  EXPECT_EQ(trace.groups[1].members, (std::vector{WorldRank(1), WorldRank(3)}));
}

TEST_F(Formats, ExecutionTracesReadGroupsThatPythonPrinted) {
  for (const int rank : {0, 1, 2}) {
    const std::string pair = std::to_string(94594108284448 + rank),
                      job = std::to_string(94594108280000 + rank);
    const std::string groups = "[{'pg_id': 9, 'backend_id': " + job +
                               ", 'backend_config': 'cuda:nccl', 'ranks': {0: 0, 1: 1, 2: 2}}, "
                               "{'pg_id': 8, 'backend_id': " +
                               pair + ", 'ranks': {0: 0, 2: 1}}]";
    folder.write("rank" + std::to_string(rank) + ".json",
                 R"({"schema": "1.0.1", "nodes": [
                   {"id": 2, "name": "## process_group:init ##", "inputs": [")" +
                     groups + R"("]},
                   {"id": 3, "name": "record_param_comms", "inputs":
                    [[[8, 9, 0, 5, 4, "cuda:0"]], 1, )" +
                     job + ", " + std::to_string(rank) + R"(, "allreduce", [], []]})" +
                     (rank == 1 ? ""
                                : R"(, {"id": 4, "name": "record_param_comms", "inputs":
                                    [[[8, 9, 0, 7, 4, "cuda:0"]], 1, )" +
                                      pair + ", " + std::to_string(rank / 2) +
                                      R"(, "allreduce", [], []]})") +
                     "]}");
  }
  const Trace trace = import_trace({folder.path("rank*.json")}, "", 0);
  ASSERT_EQ(trace.groups.size(), 2U);
  EXPECT_EQ(trace.groups[0].members.size(), 3U);
  EXPECT_EQ(trace.groups[1].members, (std::vector{WorldRank(0), WorldRank(2)}));
  check_workload(replay(trace, {}).workload);
  EXPECT_EQ(summary_of(trace, 3).stated, (Counts64{{"allreduce", 3 * 20 + 2 * 28}}));
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

TEST_F(Formats, ExecutionTracesRefuseTensorsOfAnotherForm) {
  EXPECT_EQ(refused("et_rank0.json",
                    R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [
                       {"id": 2, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {"values":
                        [[[1, 1, 0, 16, 2]], 5, ["1", ""], 0, "allreduce", [], [], 0, 1, 2]},
                        "outputs": {"values": []}}]})"),
            "et_rank0.json: node 2: tensors that are not [id, storage, offset, elements, bytes of "
            "one, device], so their sizes are not known");
}

}  // namespace
}  // namespace ghostrank
