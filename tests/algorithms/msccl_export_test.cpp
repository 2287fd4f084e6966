// Every schedule of the registry, written as an MSCCL file and read back, sends the same messages
// on every connection and is still proved.
#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "collectives/node_links.h"
#include "collectives/schemes/blink.h"
#include "profiles/error.h"
#include "tests/algorithms/support.h"
#include "tests/collectives/calls.h"

namespace ghostrank {
namespace {

class MscclExport : public ::testing::TestWithParam<Algorithm> {};

void expect_the_same(const Schedule& schedule, const std::string& what) {
  const std::string xml = to_xml(to_msccl(schedule, "export"));
  const auto again = testing::parsed(xml);
  const auto copy = msccl_schedule(again, schedule.collective(), {});
  EXPECT_EQ(testing::messages_of(schedule), testing::messages_of(*copy)) << what;
  const CheckReport report = check(*copy);
  EXPECT_TRUE(report.ok) << what << ": " << report.error;
}

// Null for a size that the row refuses; some of NCCL's algorithms need whole nodes of eight.
std::unique_ptr<Schedule> make(const Algorithm& row, const Collective& c) {
  Communicator spread, nodes_of_eight;
  for (GroupRank r = 0; r < c.size; ++r) nodes_of_eight.node_of.push_back(r / 8);
  for (const Communicator* comm : {c.size == 16 ? &nodes_of_eight : &spread, &nodes_of_eight}) {
    try {
      return row.make(c, *comm);
    } catch (const std::invalid_argument&) {
    }
  }
  return nullptr;
}

TEST_P(MscclExport, SendsTheSameMessagesAgain) {
  const Algorithm& row = GetParam();
  int written = 0;
  for (const int size : {2, 3, 4, 8, 16})
    for (const std::uint64_t count : {48u, 101u, 32'768u}) {
      const Collective c = testing::call(row.func, size, count);
      const std::string what = std::string(row.library) + "/" + std::string(row.name) + " size " +
                               std::to_string(size) + " count " + std::to_string(count);
      const std::unique_ptr<Schedule> schedule = make(row, c);
      if (!schedule || (size > 4 && count > 1000)) continue;
      if (msccl_name_of(row.func).empty())
        EXPECT_THROW(to_msccl(*schedule, "export"), std::invalid_argument) << what;
      else
        expect_the_same(*schedule, what);
      ++written;
    }
  EXPECT_GT(written, 0);
}

std::string test_name(const ::testing::TestParamInfo<Algorithm>& row) {
  std::string name = std::string(row.param.library) + "_" + std::string(name_of(row.param.func)) +
                     "_" + std::string(row.param.name);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

std::vector<Algorithm> rows_with_schedules() {
  std::vector<Algorithm> rows;
  std::ranges::copy_if(registry(), std::back_inserter(rows),
                       [](const Algorithm& row) { return static_cast<bool>(row.make); });
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Registry, MscclExport, ::testing::ValuesIn(rows_with_schedules()),
                         test_name);

TEST(MscclExportOf, ASlicedRingWithChannelsKeepsSlicesAndChannels) {
  Communicator comm;
  comm.channels = 3;
  comm.slice_bytes = 16;
  const auto schedule = find_algorithm("generic", Func::all_reduce, "ring")
                            ->make({Func::all_reduce, 4, 96, 4, 0}, comm);
  expect_the_same(*schedule, "sliced ring");
}

TEST(MscclExportOf, ARingIsOneThreadblockOfFusedStepsPerRank) {
  const auto schedule = find_algorithm("generic", Func::all_reduce, "ring")
                            ->make({Func::all_reduce, 4, 64, 4, 0}, {});
  const MscclAlgorithm algorithm = to_msccl(*schedule, "ring");
  EXPECT_EQ(algorithm.chunks_per_loop, 4u);
  for (const MscclRank& rank : algorithm.ranks) {
    ASSERT_EQ(rank.threadblocks.size(), 1u);
    std::string ops;
    for (const MscclStep& step : rank.threadblocks[0].steps)
      ops += std::string(name_of(step.op)) + " ";
    EXPECT_EQ(ops, "s rrcs rrcs rrcs rcs rcs r ");
  }
}

TEST(MscclExportOf, AnImportedFileSendsTheSameMessagesAgain) {
  for (const std::string& xml : {testing::all_pairs_xml(4, true), testing::all_pairs_xml(3, false),
                                 testing::fused_ring_xml(4, 2)}) {
    const auto algorithm = testing::parsed(xml);
    const Collective c{Func::all_reduce, static_cast<int>(algorithm->ranks.size()), 24, 4, 0};
    expect_the_same(*msccl_schedule(algorithm, c, {}), xml);
  }
}

// Why to_msccl() refuses the schedule.
std::string refusal_of(const Schedule& schedule) {
  try {
    to_msccl(schedule, "refused");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// A reduce-scatter between two ranks whose outputs have both blocks.
TEST(MscclExportOf, AnOutputOfMoreThanTheOwnBlockIsRefused) {
  using testing::step_xml;
  std::string gpus;
  for (int r = 0; r < 2; ++r) {
    const std::string own = std::to_string(r), other = std::to_string(1 - r);
    gpus += testing::gpu_xml(r, 2, 2, 0,
                             testing::tb_xml(0, 1 - r, 1 - r,
                                             step_xml(0, "s", "i" + other, "i" + other) +
                                                 step_xml(1, "r", "o" + other, "o" + other) +
                                                 step_xml(2, "cpy", "i" + own, "o" + own) +
                                                 step_xml(3, "re", "o" + other, "o" + own)));
  }
  const auto algorithm = testing::parsed(testing::algo_xml("reducescatter", 2, 2, false, gpus));
  const auto schedule = msccl_schedule(algorithm, {Func::reduce_scatter, 2, 8, 4, 0}, {});
  EXPECT_TRUE(check(*schedule).ok) << check(*schedule).error;
  EXPECT_NE(refusal_of(*schedule).find("uses blocks of its output other than its own"),
            std::string::npos)
      << refusal_of(*schedule);
}

// 280,000 steps per rank: 7 for each element of a quarter of the buffer.
TEST(MscclExportOf, MoreStepsThanTheReaderTakesAreRefused) {
  Communicator comm;
  comm.slice_bytes = 4;
  const auto schedule = find_algorithm("generic", Func::all_reduce, "ring")
                            ->make({Func::all_reduce, 4, 160'000, 4, 0}, comm);
  EXPECT_NE(refusal_of(*schedule).find("too many steps to spell out"), std::string::npos);
}

// Shares of Blink's trees have nothing in common with each other but single elements. What is
// written can be read.
TEST(MscclExportOf, WhatTheReaderDoesNotTakeIsRefused) {
  Communicator comm;
  comm.node_of.assign(8, 0);
  comm.links = std::make_shared<const NodeLinks>(node_links("dgx-1v"));
  int written = 0, refused = 0;
  for (const std::uint64_t count : {1000u, 100'003u, 1'000'003u, 4'000'037u, 100'000'007u}) {
    const auto schedule = make_blink({Func::all_reduce, 8, count, 4, 0}, comm);
    const std::string why = refusal_of(*schedule);
    ++(why.empty() ? written : refused);
    if (why.empty())
      expect_the_same(*schedule, std::to_string(count));
    else
      EXPECT_NE(why.find("export a call of fewer elements"), std::string::npos) << why;
  }
  EXPECT_GT(written, 0);
  EXPECT_GT(refused, 0);
}

TEST(MscclExportOf, RootsOtherThanTheFirstAreKept) {
  for (const Func func : {Func::broadcast, Func::reduce, Func::gather, Func::scatter}) {
    const auto schedule = find_algorithm("generic", func, "auto")->make({func, 5, 20, 4, 3}, {});
    expect_the_same(*schedule, std::string(name_of(func)));
  }
}

}  // namespace
}  // namespace ghostrank
