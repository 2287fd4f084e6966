// Properties that the rows of NCCL's libraries share.
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

TEST(NcclTuned, IsTheScheduleOfTheAlgorithmThatTheTunerTakes) {
  const auto steps = [](const char* name, Func func, std::uint64_t count, int per_node) {
    Communicator comm;
    comm.channels = 16;
    comm.node = per_node == 1 ? "one-gpu-400g" : "auto";
    comm.node_of = nodes_of(16, per_node);
    const auto schedule =
        find_algorithm("nccl-2.28", func, name)->make({func, 16, count, 4, 0}, comm);
    return std::make_pair(schedule->played(), schedule->actor(1, 0).steps);
  };
  const Func all_reduce = Func::all_reduce, all_gather = Func::all_gather;
  EXPECT_EQ(steps("tuned", all_reduce, 1000, 8), steps("tree", all_reduce, 1000, 8));
  EXPECT_EQ(steps("tuned", all_reduce, 1 << 26, 8), steps("nvlstree", all_reduce, 1 << 26, 8));
  EXPECT_EQ(steps("tuned", all_reduce, 1 << 26, 1), steps("ring", all_reduce, 1 << 26, 1));
  EXPECT_EQ(steps("tuned", all_gather, 1 << 13, 1), steps("pat", all_gather, 1 << 13, 1));
  EXPECT_EQ(steps("tuned", all_gather, 1 << 26, 1), steps("ring", all_gather, 1 << 26, 1));
}

TEST(NcclTuned, SaysWhatItTook) {
  Communicator comm;
  comm.channels = 0;
  comm.node_of = nodes_of(16, 8);
  const auto played = [&](Func func, std::uint64_t count) {
    return find_algorithm("nccl-2.28", func, "auto")->make({func, 16, count, 4, 0}, comm)->played();
  };
  EXPECT_EQ(played(Func::all_reduce, 1000), "tree/LL");
  EXPECT_EQ(played(Func::all_reduce, 1 << 26), "nvlstree/Simple");
  EXPECT_EQ(played(Func::all_gather, 1000), "ring/LL");
  EXPECT_EQ(played(Func::broadcast, 1 << 26), "ring/Simple");
  comm.environment["NCCL_ALGO"] = "allreduce:ring";
  EXPECT_EQ(played(Func::all_reduce, 1 << 23), "ring/LL128");
  comm.environment["NCCL_PROTO"] = "Simple";
  EXPECT_EQ(played(Func::all_reduce, 1 << 26), "ring/Simple");
  EXPECT_EQ(played(Func::all_gather, 1000), "ring/Simple");
  comm.environment["NCCL_ALGO"] = "tree";  // a broadcast cannot use it
  EXPECT_THROW(played(Func::broadcast, 1000), std::invalid_argument);
}

TEST(NcclTuned, IsRightWhateverItTakes) {
  for (const Func func : {Func::all_reduce, Func::all_gather, Func::reduce_scatter})
    for (const int per_node : {1, 2, 4})
      for (const std::uint64_t count : {0, 1, 1000, 20000}) {
        Communicator comm;
        comm.channels = 0;
        comm.node_of = nodes_of(8, per_node);
        const auto schedule =
            find_algorithm("nccl-2.30", func, "tuned")->make({func, 8, count, 4, 0}, comm);
        const CheckReport report = check(*schedule);
        EXPECT_TRUE(report.ok) << describe(*schedule, comm) << ": " << report.error;
      }
}

TEST(Nccl, ChoosesByItselfWhereNothingIsNamed) {
  for (const char* library : kLibraries) {
    for (const Func func : kRingFuncs)
      EXPECT_EQ(find_algorithm(library, func, "auto")->name, "tuned");
    for (const Func func : {Func::all_to_all, Func::send_recv})
      EXPECT_EQ(find_algorithm(library, func, "auto")->name, "p2p");
  }
}

TEST(Nccl, RefusesWhatItCannotDo) {
  const auto make = [](Func func, const char* name, const Communicator& comm,
                       std::uint32_t element_bytes = 4) {
    return find_algorithm("nccl-2.30", func, name)->make({func, 4, 10, element_bytes, 0}, comm);
  };
  EXPECT_THROW(make(Func::all_reduce, "ring", {}, 3), std::invalid_argument);
  EXPECT_THROW(make(Func::all_reduce, "ring", communicator(65)), std::invalid_argument);
  Communicator unknown;
  unknown.node = "abacus";
  EXPECT_THROW(make(Func::all_reduce, "ring", unknown), std::invalid_argument);
  Communicator short_list;
  short_list.node_of = {0, 1};
  EXPECT_THROW(make(Func::all_reduce, "ring", short_list), std::invalid_argument);
  EXPECT_THROW(make(Func::all_to_all, "p2p", communicator(4, Protocol::ll)), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
