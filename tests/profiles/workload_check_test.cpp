#include "profiles/workload/workload_check.h"

#include <gtest/gtest.h>

#include "profiles/job/job.h"
#include "profiles/planners/plan.h"
#include "profiles/workload/program_builder.h"
#include "tests/profiles/support.h"
#include "tests/world_ranks.h"

namespace ghostrank {
namespace {

// Two roles, "left" and "right", in one group of two.
Workload pair_of(Program left, Program right) {
  Workload workload;
  workload.ranks = 2;
  workload.roles = {{"left", {std::move(left)}}, {"right", {std::move(right)}}};
  workload.role_of = {0, 1};
  workload.group_names = {"all"};
  workload.groups = {{0, world_ranks({0, 1})}};
  return workload;
}

std::string verdict(const Workload& workload) {
  return test::error_of([&] { check_workload(workload); });
}

Program calls(std::initializer_list<std::uint64_t> counts) {
  ProgramBuilder out({"compute"});
  for (const std::uint64_t count : counts)
    out.collective(0, "gradients", Func::all_reduce, 0, DataType::float32, count);
  return out.take();
}

TEST(WorkloadCheck, PassesProgramsThatFit) {
  EXPECT_EQ(verdict(pair_of(calls({5, 7}), calls({5, 7}))), "");
}

TEST(WorkloadCheck, NamesTheCallsThatDiffer) {
  EXPECT_EQ(verdict(pair_of(calls({5, 7}), calls({7, 5}))),
            "call 1 of group all is role right: allreduce of 7 float32 (gradients, group all) but "
            "role left: allreduce of 5 float32 (gradients, group all); members of a group must "
            "make the same calls in the same order");
}

TEST(WorkloadCheck, ShowsInWhatCallsDiffer) {
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::reduce;
  op.count = 5;
  std::vector<Op> others(5, op);
  others[0].peer = 1;
  others[1].tensor = 2;
  others[2].reduction = Reduction::max;
  others[3].dtype = DataType::int64;
  others[4].dtype = DataType::int64;
  others[4].floats = true;
  const std::vector<std::string> texts{"reduce of 5 float32 (group all, root 1)",
                                       "reduce of 5 float32 (group all, root 0, tensor 2)",
                                       "reduce:max of 5 float32 (group all, root 0)",
                                       "reduce of 5 int64 (group all, root 0)",
                                       "reduce of 5 float64 (group all, root 0)"};
  const auto program = [](const Op& call) { return Program{{"compute"}, {{call}}, {""}, 0}; };
  for (std::size_t i = 0; i < others.size(); ++i)
    EXPECT_EQ(verdict(pair_of(program(op), program(others[i]))),
              "call 1 of group all is role right: " + texts[i] +
                  " but role left: reduce of 5 float32 (group all, root 0); members of a group "
                  "must make the same calls in the same order");
}

TEST(WorkloadCheck, BothEndsOfATransferUseOneCommunicator) {
  const auto end = [](bool sends, Op::Within within) {
    ProgramBuilder out({"compute"});
    sends ? out.send(0, out.label("x"), 0, 1, DataType::float32, 5, within)
          : out.recv(0, out.label("x"), 0, -1, DataType::float32, 5, within);
    return out.take();
  };
  using Within = Op::Within;
  EXPECT_EQ(verdict(pair_of(end(true, Within::pair), end(false, Within::pair))), "");
  EXPECT_NE(verdict(pair_of(end(true, Within::pair), end(false, Within::group)))
                .find("use different communicators"),
            std::string::npos);
}

TEST(WorkloadCheck, NamesTheCallThatNobodyJoins) {
  EXPECT_EQ(verdict(pair_of(calls({5, 7}), calls({5}))),
            "the plan would wait for ever: role left: allreduce of 7 float32 (gradients, group "
            "all) on stream compute; change the order of the calls so that their partners come");
}

// The ranks enter two communicators in opposite orders: every call has its partners, but none ever
// starts.
TEST(WorkloadCheck, FindsGroupsThatAreEnteredInDifferentOrders) {
  const auto program = [](std::uint16_t first) {
    ProgramBuilder out({"compute"});
    for (const int i : {0, 1})
      out.collective(0, "call", Func::all_reduce, static_cast<std::uint16_t>(first ^ i),
                     DataType::float32, 4);
    return out.take();
  };
  Workload workload = pair_of(program(0), program(1));
  workload.group_names = {"one", "other"};
  workload.groups = {{0, world_ranks({0, 1})}, {1, world_ranks({0, 1})}};
  const std::string text = verdict(workload);
  EXPECT_NE(text.find("role left: allreduce of 4 float32 (call, group one)"), std::string::npos);
  EXPECT_NE(text.find("role right: allreduce of 4 float32 (call, group other)"), std::string::npos);
}

TEST(WorkloadCheck, HoldsBothEndsOfATransferToTheSameBytes) {
  const auto transfer = [](bool sends, std::uint64_t count) {
    ProgramBuilder out({"compute"});
    if (sends)
      out.send(0, out.label("out"), 0, 1, DataType::float32, count);
    else
      out.recv(0, out.label("in"), 0, -1, DataType::float32, count);
    return out.take();
  };
  EXPECT_EQ(verdict(pair_of(transfer(true, 9), transfer(false, 9))), "");
  EXPECT_EQ(
      verdict(pair_of(transfer(true, 9), transfer(false, 8))),
      "role right: receive of 8 float32 (in, group all) in group all but role left: send of 9 "
      "float32 (out, group all); both ends must agree on the bytes");
  EXPECT_EQ(verdict(pair_of(transfer(false, 9), transfer(false, 9))).substr(0, 29),
            "the plan would wait for ever:");
}

TEST(WorkloadCheck, NamesTheSendThatNobodyReceives) {
  ProgramBuilder twice({"compute"}), once({"compute"});
  for (const char* label : {"first", "second"})
    twice.send(0, twice.label(label), 0, 1, DataType::float32, 9);
  once.recv(0, once.label("in"), 0, -1, DataType::float32, 9);
  EXPECT_EQ(verdict(pair_of(twice.take(), once.take())),
            "role left: send of 9 float32 (second, group all) is received by nobody: role right "
            "receives 1 of 2; add the receive, or leave out the send");
}

// Each rank sends only after its receive, so both receives wait for ever.
TEST(WorkloadCheck, FindsReceivesThatWaitForEachOther) {
  const auto program = [] {
    ProgramBuilder out({"compute"});
    out.recv(0, out.label("in"), 0, 1, DataType::float32, 4);
    out.send(0, out.label("out"), 0, 1, DataType::float32, 4);
    return out.take();
  };
  EXPECT_EQ(verdict(pair_of(program(), program())),
            "the plan would wait for ever: role left: receive of 4 float32 (in, group all) on "
            "stream compute; role right: receive of 4 float32 (in, group all) on stream compute; "
            "change the order of the calls so that their partners come");
}

// Streams of one rank that wait for each other's events, and events that are not used in pairs.
// Pipelines of `stages` ranks, through which a message goes forward and another one back. All
// stages between the first and the last are one role.
Workload pipelines(int stages, int replicas, bool first_sends_first) {
  const auto program = [](std::initializer_list<int> peers) {
    ProgramBuilder out({"compute"});
    bool sends = false;
    for (const int peer : peers) {
      sends ? out.send(0, out.label("out"), 0, peer, DataType::float32, 4)
            : out.recv(0, out.label("in"), 0, peer, DataType::float32, 4);
      sends = !sends;
    }
    return out.take();
  };
  ProgramBuilder first({"compute"});
  const auto send = [&] { first.send(0, first.label("out"), 0, 1, DataType::float32, 4); };
  if (first_sends_first) send();
  first.recv(0, first.label("in"), 0, 1, DataType::float32, 4);
  if (!first_sends_first) send();
  Workload workload;
  workload.ranks = stages * replicas;
  workload.roles = {{"first", {first.take()}},
                    {"middle", {program({-1, 1, 1, -1})}},
                    {"last", {program({-1, -1})}}};
  workload.group_names = {"pp"};
  for (int replica = 0; replica < replicas; ++replica) {
    Group& group = workload.groups.emplace_back();
    for (int stage = 0; stage < stages; ++stage) {
      workload.role_of.push_back(static_cast<std::uint16_t>(stage == 0           ? 0
                                                            : stage + 1 < stages ? 1
                                                                                 : 2));
      group.members.emplace_back(replica * stages + stage);
    }
  }
  return workload;
}

TEST(WorkloadCheck, RanksOfARoleMayRelayToEachOther) {
  for (const int stages : {3, 4, 64})
    for (const int replicas : {1, 50})
      EXPECT_EQ(verdict(pipelines(stages, replicas, true)), "") << stages << " " << replicas;
  EXPECT_EQ(verdict(pipelines(5, 2, false)),
            "the plan would wait for ever: role first: receive of 4 float32 (in, group pp) on "
            "stream compute; role middle: receive of 4 float32 (in, group pp) on stream compute; "
            "role last: receive of 4 float32 (in, group pp) on stream compute; change the order "
            "of the calls so that their partners come");
}

TEST(WorkloadCheck, FindsStreamsThatWaitForEachOther) {
  Program program;
  program.stream_names = {"compute", "comm"};
  program.streams.resize(2);
  program.events = 2;
  const auto event = [](Op::Kind kind, std::uint32_t number) {
    Op op;
    op.kind = kind;
    op.event = number;
    return op;
  };
  program.streams[0] = {event(Op::Kind::wait, 0), event(Op::Kind::record, 1)};
  program.streams[1] = {event(Op::Kind::wait, 1), event(Op::Kind::record, 0)};
  EXPECT_EQ(verdict(pair_of(program, calls({}))),
            "the plan would wait for ever: role left waits for event 0 on stream compute; role "
            "left waits for event 1 on stream comm; change the order of the calls so that their "
            "partners come");
  const auto refused = [&](OpList compute, OpList comm) {
    program.streams[0] = std::move(compute);
    program.streams[1] = std::move(comm);
    return verdict(pair_of(program, calls({})));
  };
  const Op record = event(Op::Kind::record, 0), wait = event(Op::Kind::wait, 0);
  EXPECT_EQ(refused({record, record, record}, {wait, wait, wait}), "");
  EXPECT_EQ(refused({record, record}, {wait}),
            "role left: event 0 is recorded 2 times and waited for once; give every record one "
            "wait");
  EXPECT_EQ(refused({record}, {wait, record}),
            "role left: event 0 is recorded on stream compute and on stream comm, in no fixed "
            "order; give each stream an event of its own");
  EXPECT_EQ(refused({record, record, wait}, {wait}),
            "role left: event 0 is waited for on stream compute and on stream comm, in no fixed "
            "order; give each stream an event of its own");
}

TEST(WorkloadCheck, SaysWhereAProgramStands) {
  const JobSpec spec =
      test::load_text(
          "cluster: {nodes: 1, gpus_per_node: 2}\n"
          "program:\n"
          "  ranks: 2\n"
          "  groups: {all: [0-1]}\n"
          "  roles:\n"
          "    - {name: left, ranks: '0', iterations: [{compute: \"allreduce all "
          "float32 4 a\\n\"}]}\n"
          "    - {name: right, ranks: '1', iterations: [{compute: \"compute 5\\n\"}]}\n")
          .spec;
  const std::string text = test::error_of([&] { plan_workload(spec); });
  EXPECT_NE(text.find("job.yaml:3:3: the plan would wait for ever: role left: allreduce of 4"),
            std::string::npos)
      << text;
}

Program launched(Workload& workload, std::initializer_list<std::uint64_t> counts) {
  ProgramBuilder out({"compute"});
  out.begin_launch();
  for (const std::uint64_t count : counts)
    out.collective(0, "gradients", Func::all_reduce, 0, DataType::float32, count);
  out.end_launch(workload.launches);
  return out.take();
}

// NCCL plans all calls of a launch together, so members must launch the same calls.
TEST(WorkloadCheck, MembersLaunchTheSameCallsTogether) {
  Workload launches;
  const auto both = [&](const Program& left, const Program& right) {
    Workload workload = pair_of(left, right);
    workload.launches = launches.launches;
    return verdict(workload);
  };
  const Program one = launched(launches, {5, 7}), other = launched(launches, {5, 7, 9});
  EXPECT_EQ(both(one, one), "");
  EXPECT_NE(both(one, calls({5, 7})).find("must launch the same calls together"),
            std::string::npos);
  EXPECT_NE(both(other, one).find("must launch the same calls together"), std::string::npos);
}

// Calls of a launch start together, so a receive may stand before the send that its peer needs.
TEST(WorkloadCheck, CallsOfALaunchDoNotWaitForEachOther) {
  Workload launches;
  ProgramBuilder out({"compute"});
  out.begin_launch();
  out.recv(0, out.label("in"), 0, 1, DataType::float32, 4);
  out.send(0, out.label("out"), 0, 1, DataType::float32, 4);
  out.end_launch(launches.launches);
  const Program program = out.take();
  Workload workload = pair_of(program, program);
  workload.launches = launches.launches;
  EXPECT_EQ(verdict(workload), "");
}

TEST(WorkloadCheck, FindsALaunchThatIsNotWhole) {
  Workload launches;
  Program program = launched(launches, {5, 7});
  const Op first = program.streams[0].front(), second = program.streams[0].back();
  for (const Op& lonely : {first, second}) {
    program.streams[0] = {lonely};
    Workload workload = pair_of(program, program);
    workload.launches = launches.launches;
    EXPECT_EQ(verdict(workload),
              "role left, stream compute: a call is missing from its launch; the plan is damaged");
  }
}

// Deadlock: one rank sends after a collective that its peer enters only after the receive.
TEST(WorkloadCheck, FindsACollectiveBetweenASendAndItsReceive) {
  ProgramBuilder early({"compute"}), late({"compute"});
  early.collective(0, "norm", Func::all_reduce, 0, DataType::float32, 1);
  early.send(0, early.label("out"), 0, 1, DataType::float32, 4);
  late.recv(0, late.label("in"), 0, -1, DataType::float32, 4);
  late.collective(0, "norm", Func::all_reduce, 0, DataType::float32, 1);
  EXPECT_EQ(verdict(pair_of(early.take(), late.take())),
            "the plan would wait for ever: role left: allreduce of 1 float32 (norm, group all) on "
            "stream compute; role right: receive of 4 float32 (in, group all) on stream compute; "
            "change the order of the calls so that their partners come");
}

}  // namespace
}  // namespace ghostrank
