// AICB's logs: rows, and the sizes of communicators.
#include <map>

#include <gtest/gtest.h>

#include "profiles/workload/workload_check.h"
#include "tests/trace/formats.h"

namespace ghostrank {
namespace {

using test::Formats;
using test::program_of;

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

// Rows "tp:2", "ep" (no size).
std::string aicb_rows(const std::vector<std::string>& rows) {
  std::string out = kColumns;
  for (const std::string& row : rows) {
    const auto colon = row.find(':');
    out += "CommType.all_reduce,CommGroup." + row.substr(0, colon) + "_group," +
           (colon == std::string::npos ? "None" : row.substr(colon + 1)) + ",64,,,,,,,,1\n";
  }
  return out;
}
using GroupsOf = std::map<std::string, std::vector<WorldRank>>;
GroupsOf groups_in(const Trace& trace) {
  GroupsOf out;
  for (const TraceGroup& group : trace.groups) out[group.name] = group.members;
  return out;
}

// AICB's logs of single collectives have no column with the size of the communicator.
TEST_F(Formats, AicbWithoutSizesIsOfAllRanks) {
  for (const std::string name : {"dp", "tp", "ep", "ep_dp", "ep_tp", "pp"}) {
    const std::string file = folder.write(
        "log.csv",
        "comm_type,comm_group,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
        "CommType.all_to_all,CommGroup." +
            name + "_group,4096,warmup,None,None,,None,None,None,1\n");
    const Trace unknown = import_trace({file}, "", 0);
    EXPECT_EQ(unknown.ranks, 0);  // it does not say
    EXPECT_EQ(unknown.notes,
              std::vector{"comm_group_size of " + name +
                          "_group is given nowhere: all ranks, however many, are assumed"});
    EXPECT_EQ(summary_of(unknown, 8).group_bytes.at(name), 4096U);
    EXPECT_EQ(test::error_in(folder,
                             [&] {
                               replay(unknown, {0, {}});
                             }),
              "log.csv: the trace does not say of how many ranks the job was; say it, as in "
              "--ranks 8");
    const Workload workload = test::played({file}, 8).workload;
    EXPECT_EQ(workload.ranks, 8);
    EXPECT_EQ(program_of(workload, 3),
              "compute:\n" + name + ":\nall_to_all " + name + " uint8 512 warmup\n");
    const auto of_job = import_trace({file}, "", 8);
    EXPECT_EQ(of_job.notes, std::vector{"comm_group_size of " + name +
                                        "_group is given nowhere: 8, all ranks, is assumed"});
    ASSERT_EQ(of_job.groups.size(), 1U);
    EXPECT_EQ(of_job.groups[0].members.size(), 8U);
  }
}

// Sizes follow from each other and from the number of ranks.
TEST_F(Formats, AicbFindsSizesThatRowsLack) {
  const auto found = [&](const std::vector<std::string>& rows, int ranks) {
    return groups_in(import_trace({folder.write("log.csv", aicb_rows(rows))}, "", ranks));
  };
  const auto every = [](int count, int stride) {
    std::vector<WorldRank> out;
    for (int i = 0; i < count; ++i) out.emplace_back(i * stride);
    return out;
  };
  EXPECT_EQ(found({"dp:4", "tp:2", "ep"}, 0),
            (GroupsOf{{"dp", every(4, 2)}, {"tp", every(2, 1)}, {"ep", every(4, 2)}}));
  EXPECT_EQ(found({"dp:4", "tp:2", "ep_dp:2", "ep"}, 0).at("ep"), every(2, 2));
  const Trace trace =
      import_trace({folder.write("log.csv", aicb_rows({"dp:4", "tp:2", "ep"}))}, "", 0);
  for (const char* group : {"dp", "tp", "ep"})
    EXPECT_EQ(summary_of(trace, 8).group_bytes.at(group), 64U) << group;
  EXPECT_EQ(trace.notes.size(), 2U) << "the size of ep_group, and the number of ranks";
  EXPECT_EQ(found({"ep_dp:2", "ep"}, 8), (GroupsOf{{"ep_dp", every(2, 4)}, {"ep", every(4, 1)}}));
  EXPECT_EQ(found({"ep_dp:2", "ep", "dp"}, 8),
            (GroupsOf{{"ep_dp", every(2, 4)}, {"ep", every(4, 1)}, {"dp", every(8, 1)}}));
  EXPECT_EQ(found({"ep:4", "dp"}, 8), (GroupsOf{{"ep", every(4, 1)}, {"dp", every(8, 1)}}));
  EXPECT_EQ(
      found({"tp:2", "dp", "ep", "ep_tp"}, 8),
      (GroupsOf{
          {"tp", every(2, 1)}, {"dp", every(4, 2)}, {"ep", every(4, 2)}, {"ep_tp", every(8, 1)}}));
  EXPECT_EQ(found({"dp:4", "tp"}, 8), (GroupsOf{{"dp", every(4, 2)}, {"tp", every(2, 1)}}));
}

TEST_F(Formats, AicbSaysWhatNumberOfRanksItAssumes) {
  const auto read = [&](const std::string& more) {
    return import_trace({folder.write("log.csv", kColumns + more)}, "", 0);
  };
  const std::string tp = "CommType.all_reduce,CommGroup.tp_group,2,64,,,,,,,,1\n",
                    all = "CommType.all_reduce,CommGroup.all,None,64,,,,,,,,1\n";
  EXPECT_EQ(read(tp).notes, std::vector<std::string>{"of how many ranks the job was is given "
                                                     "nowhere: tp 2 times dp 1 is assumed"});
  EXPECT_EQ(read(tp).ranks, 2);
  EXPECT_EQ(read(all).ranks, 0);
  EXPECT_EQ(read(tp + "CommType.barrier,CommGroup.all,8,0,,,,,,,,1\n").ranks, 8);
}

TEST_F(Formats, AicbRefusesSizesThatDoNotFollowOrFit) {
  const auto error = [&](const std::vector<std::string>& rows, int ranks) {
    const std::string file = folder.write("log.csv", aicb_rows(rows));
    return test::error_in(folder, [&] { import_trace({file}, "", ranks); });
  };
  const std::string open = " is given nowhere and does not follow from others; ",
                    fit = "; correct comm_group_size or the number of ranks";
  EXPECT_EQ(error({"dp", "tp"}, 4),
            "log.csv:1:1: comm_group_size of tp_group and dp_group" + open + "fill in that column");
  EXPECT_EQ(error({"tp", "ep_tp"}, 8), "log.csv:1:1: comm_group_size of tp_group and ep_tp_group" +
                                           open + "fill in that column");
  EXPECT_EQ(error({"ep", "ep_dp"}, 8), "log.csv:1:1: comm_group_size of ep_group and ep_dp_group" +
                                           open + "fill in that column");
  EXPECT_EQ(error({"dp", "pp:1"}, 8),
            "log.csv:1:1: comm_group_size of dp_group" + open + "fill in that column");
  EXPECT_EQ(error({"tp:2", "dp"}, 0),
            "log.csv:1:1: comm_group_size of dp_group" + open +
                "say of how many ranks the job was, as in --ranks 8, or fill in that column");
  EXPECT_EQ(error({"dp:4", "embedding"}, 0),
            "log.csv:1:1: the number of stages does not follow; say of how many ranks the job was, "
            "as in --ranks 8");
  EXPECT_EQ(error({"dp:8", "ep_dp:3", "ep"}, 0),
            "log.csv:1:1: dp 8 is no multiple of ep_dp 3" + fit);
  EXPECT_EQ(error({"dp:2", "ep:3"}, 6), "log.csv:1:1: dp 2 is no multiple of ep 3" + fit);
  EXPECT_EQ(error({"dp:4", "ep:3"}, 12), "log.csv:1:1: dp 4 is no multiple of ep 3" + fit);
  EXPECT_EQ(error({"dp:8", "ep:2", "ep_dp:2"}, 8),
            "log.csv:1:1: dp 8 is not ep 2 times ep_dp 2; correct comm_group_size");
  EXPECT_EQ(error({"tp:3", "dp"}, 8),
            "log.csv:1:1: the number of ranks, 8, is no multiple of tp 3" + fit);
  EXPECT_EQ(error({"tp:8", "dp:16"}, 8),
            "log.csv:1:1: the number of ranks, 8, is no multiple of tp 8 times dp 16" + fit);
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

TEST_F(Formats, AicbSaysHowManyRepeatsAreLeftOut) {
  using Left = std::map<std::string, std::uint64_t>;
  const auto left = [&](const std::string& text) {
    return import_trace({folder.write("log.csv", text)}, "", 4).left_out;
  };
  const auto row = [](const char* count) {
    return std::string(kColumns) + "CommType.all_reduce,CommGroup.tp_group,2,64,fwd,,,,,,," +
           count + "\n";
  };
  EXPECT_EQ(left(row("1")), Left{});
  EXPECT_EQ(left(row("3")), (Left{{"repeats of rows (count): a row is played once", 2}}));
  EXPECT_EQ(refused("log.csv", row("-1")), "log.csv:2:1: count '-1' is no number of times");
  EXPECT_EQ(refused("log.csv", row("9223372036854775807")),
            "log.csv:2:1: count 9223372036854775807 is more than 10^9 times");
}

}  // namespace
}  // namespace ghostrank
