// Every row of the textbook, Open MPI and gloo, proved by the checker and compared with its
// closed-form cost.
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "collectives/libraries.h"
#include "collectives/schedule.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/nodes.h"

namespace ghostrank {
namespace {

using testing::call;
using testing::nodes_of;

std::string describe(const Algorithm& row, const Collective& c, const Communicator& comm) {
  return std::string(row.name) + ' ' + std::string(name_of(row.func)) + ", size " +
         std::to_string(c.size) + ", count " + std::to_string(c.count) + ", root " +
         std::to_string(c.root) + ", channels " + std::to_string(comm.channels) + ", slice bytes " +
         std::to_string(comm.slice_bytes) + ", credits " +
         std::to_string(comm.flow_control.credits);
}

// True if next_step(), which turns each step into the following one, agrees with step().
bool walks_the_same_steps(const Schedule& schedule) {
  for (GroupRank r = 0; r < schedule.collective().size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a) {
      Step walked;
      for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
        schedule.next_step(r, a, k, walked);
        if (walked != schedule.step(r, a, k)) return false;
      }
    }
  return true;
}

// Proves the schedule and compares its bytes with the closed form; returns the checker's report.
CheckReport prove(const Algorithm& row, const Collective& c, const Communicator& comm) {
  const auto schedule = row.make(c, comm);
  const CheckReport report = check(*schedule);
  EXPECT_TRUE(report.ok) << describe(row, c, comm) << ": " << report.error;
  EXPECT_TRUE(walks_the_same_steps(*schedule)) << describe(row, c, comm);
  if (row.cost) {
    EXPECT_EQ(report.bytes, row.cost(c).bytes) << describe(row, c, comm);
  }
  return report;
}

bool has_blocks(Func func) {  // `count` is a block's length, not a buffer to cut
  return func != Func::all_reduce && func != Func::reduce && func != Func::broadcast &&
         func != Func::send_recv;
}

// For functions that cut a buffer into one piece per rank: fewer elements than ranks, as many,
// more. Blocks are cut only by channel and slice, whatever the group's size.
std::set<std::uint64_t> counts_for(Func func, int size) {
  const auto n = static_cast<std::uint64_t>(size);
  if (has_blocks(func)) return {0, 1, 2, 3, 13};
  return {0, 1, 3, n - 1, n, n + 1, 5 * n + 3, 100};
}

class EveryAlgorithm : public ::testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithm, KeepsTheContractAndCostsWhatItsClosedFormSays) {
  for (int size = 1; size <= 64; ++size)
    for (const std::uint64_t count : counts_for(GetParam().func, size)) {
      const Collective c = call(GetParam().func, size, count, size / 3);
      const CheckReport report = prove(GetParam(), c, {});
      if (HasFailure()) return;
      if (!GetParam().cost) continue;  // it depends on the nodes
      const Cost cost = GetParam().cost(c);
      EXPECT_EQ(report.messages, cost.messages) << describe(GetParam(), c, {});
      if (cost.most_steps)
        EXPECT_LE(report.rounds, cost.steps) << describe(GetParam(), c, {});
      else
        EXPECT_EQ(report.rounds, cost.steps) << describe(GetParam(), c, {});
    }
}

TEST_P(EveryAlgorithm, WorksFromEveryRoot) {
  for (const int size : {1, 2, 6, 8, 11, 17})
    for (GroupRank root = 0; root < size; ++root)
      for (const int channels : {1, 4})
        prove(GetParam(), call(GetParam().func, size, 10, root),
              {nodes_of(size, 4), channels, 0, {}});
}

TEST_P(EveryAlgorithm, SendsNothingInAGroupOfOne) {
  const Collective c = call(GetParam().func, 1, 10);
  EXPECT_EQ(prove(GetParam(), c, {}).messages, 0U);
}

// Algorithms that take channels, slices, credits and nodes from the communicator.
class EveryTextbookAlgorithm : public ::testing::TestWithParam<Algorithm> {};

TEST_P(EveryTextbookAlgorithm, WorksOnChannelsSlicesAndCreditsOfAnyNumber) {
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 13, 16})
    for (const std::uint64_t count : counts_for(GetParam().func, size))
      for (const int channels : {1, 2, 8})
        for (const std::uint64_t slice_bytes : {0, 1, 12, 64})
          for (const std::uint32_t credits : {0U, 1U, 2U, 4U}) {
            if (slice_bytes == 0 && credits > 1) continue;
            prove(GetParam(), call(GetParam().func, size, count, size - 1),
                  {{}, channels, slice_bytes, {credits}});
            if (HasFailure()) return;
          }
}

TEST_P(EveryTextbookAlgorithm, WorksOnLargeGroupsWithOneCreditAndManySlices) {
  for (int size = 17; size <= 64; size += size < 32 ? 1 : 5)
    for (const int channels : {1, 8}) {
      const auto n = static_cast<std::uint64_t>(size);
      const std::uint64_t count = has_blocks(GetParam().func) ? 13 : 5 * n + 3;
      prove(GetParam(), call(GetParam().func, size, count),
            {{}, channels, has_blocks(GetParam().func) ? 4U : 60U, {1}});
    }
}

TEST_P(EveryTextbookAlgorithm, WorksOnNodesOfManyRanksEvenUnequalOrScatteredOnes) {
  for (const int size : {2, 5, 8, 12, 16, 24, 32, 40, 64}) {
    std::vector<std::vector<std::int32_t>> layouts;
    for (const int ranks_per_node : {1, 4, 8}) layouts.push_back(nodes_of(size, ranks_per_node));
    std::vector<std::int32_t> scattered;
    for (int r = 0; r < size; ++r) scattered.push_back(r % 2);
    layouts.push_back(scattered);
    const std::uint64_t count = has_blocks(GetParam().func) ? 13 : 100;
    for (const auto& node_of : layouts)
      for (const int channels : {1, 2, 8})
        for (const std::uint32_t credits : {0U, 2U})
          prove(GetParam(), call(GetParam().func, size, count, size / 2),
                {node_of, channels, credits > 0 ? 16U : 0U, {credits}});
  }
}

// Algorithms of libraries that choose their own channels, slices and credits, or have none.
class EveryAlgorithmOfALibrary : public ::testing::TestWithParam<Algorithm> {};

// Every step of every rank as text.
std::string steps_of(const Schedule& schedule) {
  std::ostringstream text;
  const auto block = [&](const Block& b) { text << ' ' << b.offset << '+' << b.count; };
  for (GroupRank r = 0; r < schedule.collective().size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a)
      for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
        const Step step = schedule.step(r, a, k);
        text << r << ' ' << a << ' ' << k << ' ' << step.slices << " from";
        for (const GroupRank from : step.recv_from) text << ' ' << from;
        block(step.recv);
        text << " to";
        for (const GroupRank to : step.send_to) text << ' ' << to;
        block(step.send);
        text << '\n';
      }
  return text.str();
}

TEST_P(EveryAlgorithmOfALibrary, IsTheSameWhateverTheCommunicatorSays) {
  for (const int size : {1, 2, 5, 8, 13, 24}) {
    const Collective c = call(GetParam().func, size, 30, size - 1);
    const auto plain = GetParam().make(c, {});
    const auto set_up = GetParam().make(c, {nodes_of(size, 4), 8, 16, {1}});
    EXPECT_EQ(steps_of(*set_up), steps_of(*plain)) << describe(GetParam(), c, {});
    EXPECT_EQ(set_up->flow_control().credits, plain->flow_control().credits);
  }
}

std::string test_name(const ::testing::TestParamInfo<Algorithm>& row) {
  std::string name = std::string(row.param.library) + '_' + std::string(name_of(row.param.func)) +
                     '_' + std::string(row.param.name);
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
}

auto rows_of(std::span<const Algorithm> rows) {
  return ::testing::ValuesIn(rows.begin(), rows.end());
}

std::vector<Algorithm> schedules_of_schemes() {
  std::vector<Algorithm> rows;
  for (const Algorithm& row : scheme_rows())
    if (row.make) rows.push_back(row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Generic, EveryAlgorithm, rows_of(generic_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(Schemes, EveryAlgorithm, ::testing::ValuesIn(schedules_of_schemes()),
                         test_name);
INSTANTIATE_TEST_SUITE_P(OpenMpi, EveryAlgorithm, rows_of(openmpi_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(Gloo, EveryAlgorithm, rows_of(gloo_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(Generic, EveryTextbookAlgorithm, rows_of(generic_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(Schemes, EveryTextbookAlgorithm,
                         ::testing::ValuesIn(schedules_of_schemes()), test_name);
INSTANTIATE_TEST_SUITE_P(OpenMpi, EveryAlgorithmOfALibrary, rows_of(openmpi_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(Gloo, EveryAlgorithmOfALibrary, rows_of(gloo_rows()), test_name);

TEST(Registry, HasAnAlgorithmOfGenericAndOpenMpiForEveryFunction) {
  for (const char* library : {"generic", "openmpi-4.1"})
    for (int f = 0; f < kFuncs; ++f)
      EXPECT_NE(find_algorithm(library, static_cast<Func>(f), "auto"), nullptr) << library << f;
}

TEST(Registry, FindsByNameAndTakesTheFirstRowForAuto) {
  const Algorithm* by_name = find_algorithm("generic", Func::all_reduce, "recursive_doubling");
  ASSERT_NE(by_name, nullptr);
  EXPECT_EQ(by_name->name, "recursive_doubling");
  EXPECT_EQ(find_algorithm("generic", Func::all_reduce, "auto")->name, "ring");
  EXPECT_EQ(find_algorithm("generic", Func::all_reduce, "teleport"), nullptr);
  EXPECT_EQ(find_algorithm("nobody", Func::all_reduce, "auto"), nullptr);
}

TEST(Registry, SaysWhatToDoWhereALibraryLacksAFunction) {
  EXPECT_NE(why_absent("nccl-2.30", Func::barrier).find("allreduce"), std::string_view::npos);
  EXPECT_EQ(why_absent("nccl-2.30", Func::all_reduce), "");
}

TEST(Registry, NamesEveryRowOnce) {
  std::set<std::string> seen;
  for (const Algorithm& row : registry())
    EXPECT_TRUE(seen.insert(std::string(row.library) + '/' + std::string(name_of(row.func)) + '/' +
                            std::string(row.name))
                    .second);
}

// A message of another job may name a channel that the call lacks, or a rank that the group lacks.
// Under AddressSanitizer this finds accesses out of bounds.
TEST(Receivers, OfWhatACallLacksAreNone) {
  std::set<std::string> made, all;
  for (const auto& [size, per_node] : {std::pair(16, 8), std::pair(8, 8), std::pair(4, 1)})
    for (const Algorithm& row : registry()) {
      if (!row.make) continue;
      const std::string name = std::string(row.library) + ' ' + std::string(name_of(row.func)) +
                               ' ' + std::string(row.name);
      all.insert(name);
      SCOPED_TRACE(name);
      const bool nccl = row.library.starts_with("nccl");
      Communicator comm;
      comm.node_of = nodes_of(size, per_node);
      if (nccl) {
        comm.channels = 0;
        comm.node = "hgx-h100-400g";
        comm.environment = {{"NCCL_PROTO", "simple"}};
      }
      std::unique_ptr<Schedule> schedule;
      try {
        schedule = row.make(call(row.func, size, 1000), comm);
      } catch (const std::invalid_argument&) {
        continue;  // not on these nodes
      }
      made.insert(name);
      for (GroupRank dst = 0; dst < size; ++dst)
        for (const GroupRank src : {-1, 0, size, 1'000'000}) {
          schedule->receiver(dst, 0, src);
          for (const int channel : {-1, 1000}) {
            const auto receiver = static_cast<unsigned>(schedule->receiver(dst, channel, src));
            if (nccl || row.library == "generic" || row.name == "blink") {
              EXPECT_GE(receiver, static_cast<unsigned>(schedule->actors(dst))) << channel;
            }
          }
          if (nccl && row.name == "p2p" && row.func != Func::send_recv && src != 0) {
            EXPECT_GE(static_cast<unsigned>(schedule->receiver(dst, 0, src)),
                      static_cast<unsigned>(schedule->actors(dst)))
                << src;
          }
        }
    }
  EXPECT_EQ(made, all);
}

// Textbook costs of algorithms, in numbers worked out by hand.
TEST(Costs, AreThoseOfTheTextbooks) {
  const auto cost = [](Func func, const char* name, int size, std::uint64_t count) {
    return find_algorithm("generic", func, name)->cost({func, size, count, 4, 0});
  };
  const Cost ring = cost(Func::all_reduce, "ring", 4, 1000);
  EXPECT_EQ(ring.steps, 6);
  EXPECT_EQ(ring.bytes, 24'000U);
  EXPECT_EQ(ring.messages, 24U);
  const Cost doubling = cost(Func::all_reduce, "recursive_doubling", 6, 1000);
  EXPECT_EQ(doubling.steps, 4);
  EXPECT_EQ(doubling.bytes, 48'000U);  // 4 ranks x 2 rounds, 2 folds, 2 unfolds
  EXPECT_EQ(cost(Func::broadcast, "binomial", 9, 1000).steps, 4);
  EXPECT_EQ(cost(Func::broadcast, "binomial", 9, 1000).bytes, 32'000U);
  EXPECT_EQ(cost(Func::all_to_all, "pairwise", 3, 10).bytes, 240U);
  EXPECT_EQ(cost(Func::barrier, "dissemination", 5, 0).messages, 15U);
}

TEST(RingAllReduce, LoadsEveryRankAlike) {
  const Collective c{Func::all_reduce, 8, 800, 4, 0};
  const CheckReport report =
      check(*find_algorithm("generic", c.func, "ring")->make(c, {}), {.pairs = true});
  ASSERT_EQ(report.pairs.size(), 8U);
  for (const PairBytes& pair : report.pairs) {
    EXPECT_EQ(pair.destination, (pair.source + 1) % 8);
    EXPECT_EQ(pair.bytes, 2U * 7 * 400);  // 2 (n-1)/n of 3200 bytes
    EXPECT_EQ(pair.messages, 14U);
  }
}

TEST(RingAllReduce, SendsItsLeftNeighboursPieceFirst) {
  const Collective c{Func::all_reduce, 4, 40, 4, 0};
  const auto schedule = find_algorithm("generic", c.func, "ring")->make(c, {});
  EXPECT_EQ(schedule->step(1, 0, 0).send, (Block{0, 10}));
  EXPECT_EQ(schedule->step(0, 0, 0).send, (Block{30, 10}));
  EXPECT_EQ(schedule->actor(0, 0).steps, 7);
}

// The ranks that send data to another node.
std::set<GroupRank> gateways(const Communicator& comm, int size) {
  const Collective c{Func::all_reduce, size, 1000, 4, 0};
  const auto schedule = find_algorithm("generic", c.func, "ring")->make(c, comm);
  const CheckReport report = check(*schedule, {.pairs = true});
  EXPECT_TRUE(report.ok) << report.error;
  const auto node = [&](GroupRank r) { return comm.node_of[r]; };
  std::set<GroupRank> senders;
  for (const PairBytes& pair : report.pairs)
    if (node(pair.source) != node(pair.destination)) senders.insert(pair.source);
  return senders;
}

TEST(Channels, OfARingUseAllNicsOfANode) {
  EXPECT_EQ(gateways({nodes_of(32, 8), 8, 0, {}}, 32).size(), 32U);
  EXPECT_EQ(gateways({nodes_of(32, 8), 1, 0, {}}, 32), (std::set<GroupRank>{7, 15, 23, 31}));
  EXPECT_EQ(gateways({nodes_of(16, 4), 2, 0, {}}, 16),
            (std::set<GroupRank>{0, 3, 4, 7, 8, 11, 12, 15}));
  EXPECT_EQ(gateways({{0, 0, 0, 1, 1}, 6, 0, {}}, 5), (std::set<GroupRank>{0, 1, 2, 3, 4}));
}

TEST(Channels, EnterANodeAtTheirLocalRankAndLeaveItOneBefore) {
  const Collective c{Func::all_reduce, 16, 1000, 4, 0};
  const auto schedule =
      find_algorithm("generic", c.func, "ring")->make(c, {nodes_of(16, 4), 4, 0, {}});
  for (int channel = 0; channel < 4; ++channel) {
    const GroupRank leaves = 4 + (channel + 3) % 4, enters = 8 + channel;
    EXPECT_EQ(schedule->step(leaves, channel, 0).send_to[0], enters);
    EXPECT_EQ(schedule->step(enters, channel, 1).recv_from[0], leaves);
  }
}

}  // namespace
}  // namespace ghostrank
