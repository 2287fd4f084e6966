// Calls that NCCL plans together, in numbers worked out by hand from its rules.
#include "collectives/nccl/group.h"

#include <array>
#include <random>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"

namespace ghostrank {
namespace {

Collective all_reduce(int ranks, std::uint64_t bytes, Reduction reduction = Reduction::sum) {
  Collective c{Func::all_reduce, ranks, bytes / 4, 4, 0};
  c.reduction = reduction;
  return c;
}

// One GPU a node: 4 channels.
Communicator single_gpus(int nodes) {
  Communicator comm;
  comm.node = "hgx-h100-400g";
  comm.channels = 0;
  for (int i = 0; i < nodes; ++i) comm.node_of.push_back(i);
  return comm;
}

Communicator ring_simple(int nodes) {
  Communicator comm = single_gpus(nodes);
  comm.environment = {{"NCCL_ALGO", "ring"}, {"NCCL_PROTO", "simple"}};
  return comm;
}

using Places = std::vector<std::pair<int, int>>;  // first channel, channels

Places places(const NcclGroupPlan& plan) {
  Places out;
  for (const NcclPlan& one : plan.plans) out.emplace_back(one.split.first, one.split.channels);
  return out;
}

TEST(NcclGroup, OfOneCallIsThatCall) {
  for (const NcclVersion version : {NcclVersion::v2_28, NcclVersion::v2_30})
    for (std::uint64_t bytes = 4; bytes <= 256 << 20; bytes *= 8)
      for (const Func func : {Func::all_reduce, Func::all_gather, Func::reduce_scatter,
                              Func::broadcast, Func::reduce}) {
        const Communicator comm = single_gpus(4);
        Collective c = all_reduce(4, bytes);
        c.func = func;
        const NcclChoice choice =
            nccl_choose(nccl_tuner_input(nccl_plan(version, NcclAlgorithm::ring, c, comm), comm));
        const NcclPlan alone = nccl_plan(version, choice.algorithm, c, comm);
        const NcclGroupPlan group = nccl_group_plan(version, {&c, 1}, comm);
        ASSERT_EQ(group.plans.size(), 1U);
        EXPECT_EQ(group.plans[0].name(), alone.name());
        EXPECT_EQ(group.plans[0].split, alone.split);
      }
}

// 2 MiB of traffic each, and 4 channels: 1 MiB for each channel.
TEST(NcclGroup, SharesTheChannels) {
  const std::vector<Collective> two{all_reduce(2, 1 << 20), all_reduce(2, 1 << 20)};
  for (const NcclVersion version : {NcclVersion::v2_28, NcclVersion::v2_30})
    EXPECT_EQ(places(nccl_group_plan(version, two, ring_simple(2))), (Places{{0, 2}, {2, 2}}));
  EXPECT_EQ(places(nccl_group_plan(NcclVersion::v2_30, {two.data(), 1}, ring_simple(2))),
            (Places{{0, 4}}));
}

// 12 MiB of traffic for 4 channels: 2 MiB are two thirds of a channel, 8 MiB begin behind them.
TEST(NcclGroup, GoesFromSmallToLargeAndOnWhereTheLastHasEnded) {
  const std::vector<Collective> three{all_reduce(2, 4 << 20), all_reduce(2, 1 << 20),
                                      all_reduce(2, 1 << 20)};
  const NcclGroupPlan plan = nccl_group_plan(NcclVersion::v2_30, three, ring_simple(2));
  EXPECT_EQ(plan.order, (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(places(plan), (Places{{0, 1}, {0, 2}, {1, 3}}));
}

// Alone each is small enough for a tree; their sum is not.
TEST(NcclGroup, DecidesByTheSumOfWhatIsWithinFourTimes) {
  const Communicator comm = single_gpus(8);
  const auto name_of_alone = [&](std::uint64_t bytes) {
    const Collective c = all_reduce(8, bytes);
    return nccl_group_plan(NcclVersion::v2_30, {&c, 1}, comm).plans[0].name();
  };
  const std::string large = name_of_alone(8 * (512 << 10));
  EXPECT_EQ(large, "ring/LL128");
  EXPECT_EQ(name_of_alone(512 << 10), "tree/LL128");
  const std::vector<Collective> eight(8, all_reduce(8, 512 << 10));
  Communicator many = comm;  // as many channels as calls: none waits for another
  many.channels = 8;
  const NcclGroupPlan plan = nccl_group_plan(NcclVersion::v2_30, eight, many);
  ASSERT_EQ(plan.plans.size(), 8U);
  for (const NcclPlan& one : plan.plans) EXPECT_EQ(one.name(), large);

  // NCCL decides apart for a call that is four times as large.
  const std::vector<Collective> apart{all_reduce(8, 512 << 10), all_reduce(8, 2 << 20)};
  const NcclGroupPlan two = nccl_group_plan(NcclVersion::v2_30, apart, comm);
  EXPECT_EQ(two.plans[0].name(), name_of_alone(512 << 10));
  EXPECT_EQ(two.plans[1].name(), name_of_alone(2 << 20));
}

// In a ring the calls of a channel run one after the other; in others up to 10 run together.
TEST(NcclGroup, CountsTheLatencyOfCallsThatFollowOneAnother) {
  const Communicator comm = single_gpus(4);
  const Collective c = all_reduce(4, 1 << 20);
  NcclTunerInput input =
      nccl_tuner_input(nccl_plan(NcclVersion::v2_30, NcclAlgorithm::ring, c, comm), comm);
  const auto time = [&](NcclAlgorithm algorithm, int calls) {
    input.calls_per_channel = calls;
    return nccl_time_us(input, algorithm, Protocol::ll128);
  };
  const double of_bytes = 2 * time(NcclAlgorithm::ring, 1) - time(NcclAlgorithm::ring, 2);
  EXPECT_GT(of_bytes, 0);
  EXPECT_NEAR(time(NcclAlgorithm::ring, 3), 3 * time(NcclAlgorithm::ring, 1) - 2 * of_bytes, 1e-9);
  EXPECT_EQ(time(NcclAlgorithm::tree, 10), time(NcclAlgorithm::tree, 1));
  EXPECT_GT(time(NcclAlgorithm::tree, 11), time(NcclAlgorithm::tree, 10));
}

// NCCL's kernels have one operator for min and max; sums have another, in a bucket of their own.
TEST(NcclGroup, PlansOperatorsOneAfterTheOther) {
  const std::vector<Collective> four{all_reduce(2, 1 << 20, Reduction::min), all_reduce(2, 1 << 20),
                                     all_reduce(2, 1 << 20, Reduction::max),
                                     all_reduce(2, 1 << 21)};
  EXPECT_EQ(nccl_group_plan(NcclVersion::v2_30, four, ring_simple(2)).order,
            (std::vector<std::size_t>{1, 3, 0, 2}));
}

TEST(NcclGroup, PlansWhatTheSwitchDoesLastAndFromTheFirstChannelOn) {
  Communicator comm;
  comm.node = "hgx-h100-400g";
  comm.channels = 0;
  comm.node_of.assign(8, 0);
  const Collective sum = all_reduce(8, 64 << 20);
  Collective gather = sum;
  gather.func = Func::all_gather;
  gather.count /= 8;
  const NcclGroupPlan plan =
      nccl_group_plan(NcclVersion::v2_28, std::vector<Collective>{sum, gather}, comm);
  EXPECT_EQ(plan.order, (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(plan.plans[0].algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(plan.plans[1].algorithm, NcclAlgorithm::nvls);
  EXPECT_EQ(places(plan), (Places{{0, 24}, {0, 16}}));
}

TEST(NcclGroup, RefusesWhatIsPlannedInAnotherWay) {
  std::vector<Collective> two(2, all_reduce(4, 1 << 20));
  for (Collective& c : two) c.func = Func::broadcast;
  EXPECT_NO_THROW(nccl_group_plan(NcclVersion::v2_30, two, single_gpus(4)));
  two[1].root = 1;
  EXPECT_NO_THROW(nccl_group_plan(NcclVersion::v2_28, two, single_gpus(4)));
  EXPECT_THROW(nccl_group_plan(NcclVersion::v2_30, two, single_gpus(4)), std::invalid_argument);
  const std::vector<Collective> many(201, all_reduce(4, 1 << 20));
  EXPECT_THROW(nccl_group_plan(NcclVersion::v2_28, many, single_gpus(4)), std::invalid_argument);
}

// The schedules that the row makes for the calls of one group, in the order of the calls.
std::vector<std::unique_ptr<Schedule>> schedules_of(const std::string& library,
                                                    const std::string& algorithm,
                                                    const std::vector<Collective>& calls,
                                                    Communicator comm) {
  comm.together = std::make_shared<const std::vector<Collective>>(calls);
  std::vector<std::unique_ptr<Schedule>> out;
  for (comm.launch_index = 0; comm.launch_index < calls.size(); ++comm.launch_index) {
    const Collective& c = calls[comm.launch_index];
    out.push_back(find_algorithm(library, c.func, algorithm)->make(c, comm));
  }
  return out;
}

Communicator two_hgx_nodes(int gpus) {
  Communicator comm = single_gpus(0);
  for (int r = 0; r < 2 * gpus; ++r) {
    comm.node_of.push_back(r / gpus);
    comm.gpu_of.push_back(r % gpus);
  }
  return comm;
}

// Whatever a group consists of, its calls are right, use the channels of the group's plan, and say
// in which order a channel serves them.
TEST(NcclGroup, IsPlayedAsItIsPlanned) {
  std::mt19937 random(25);
  for (int round = 0; round < 60; ++round) {
    const bool newer = random() % 2 == 0;
    const Communicator comm = round % 3 == 0   ? two_hgx_nodes(8)
                              : round % 3 == 1 ? two_hgx_nodes(2)
                                               : single_gpus(3 + static_cast<int>(random() % 4));
    std::vector<Collective> calls;
    for (std::size_t n = 2 + random() % 4; n > 0; --n) {
      Collective& c =
          calls.emplace_back(all_reduce(static_cast<int>(comm.node_of.size()), 4 << random() % 14));
      constexpr std::array kFuncs{Func::all_reduce, Func::reduce_scatter, Func::all_gather,
                                  Func::broadcast, Func::reduce};
      c.func = kFuncs[random() % kFuncs.size()];
      c.count += random() % 3;
      if (reduces(c.func) && random() % 4 == 0) c.reduction = Reduction::max;
    }
    const auto version = newer ? NcclVersion::v2_30 : NcclVersion::v2_28;
    const NcclGroupPlan plan = nccl_group_plan(version, calls, comm);
    const auto made = schedules_of(newer ? "nccl-2.30" : "nccl-2.28", "auto", calls, comm);
    for (std::size_t turn = 0; turn < calls.size(); ++turn) {
      const Schedule& schedule = *made[plan.order[turn]];
      const NcclSplit& split = plan.plans[turn].split;
      EXPECT_EQ(schedule.turn(), static_cast<int>(turn));
      EXPECT_EQ(schedule.played(), plan.plans[turn].name());
      std::set<int> channels;
      for (int a = 0; a < schedule.actors(0); ++a) channels.insert(schedule.actor(0, a).channel);
      ASSERT_EQ(static_cast<int>(channels.size()), split.channels) << round;
      EXPECT_EQ(*channels.begin(), split.first);
      const CheckReport report = check(schedule);
      ASSERT_TRUE(report.ok) << report.error;
    }
  }
}

// A row that names the algorithm plays it for all calls of the group, as NCCL_ALGO does.
TEST(NcclGroup, TakesTheAlgorithmThatItsRowNames) {
  std::vector<Collective> two{all_reduce(8, 4 << 20), all_reduce(8, 64 << 10)};
  Communicator forced = single_gpus(8);
  forced.environment = {{"NCCL_ALGO", "tree"}};
  const auto named = schedules_of("nccl-2.28", "tree", two, single_gpus(8));
  const auto chosen = schedules_of("nccl-2.28", "auto", two, forced);
  for (std::size_t i = 0; i < two.size(); ++i) {
    EXPECT_EQ(named[i]->played(), chosen[i]->played());
    EXPECT_EQ(named[i]->played().substr(0, 5), "tree/");
    EXPECT_EQ(named[i]->turn(), chosen[i]->turn());
    EXPECT_EQ(named[i]->actor(0, 0).channel, chosen[i]->actor(0, 0).channel);
    EXPECT_EQ(named[i]->actor(0, 0).steps, chosen[i]->actor(0, 0).steps);
  }
  two[1].func = Func::reduce;
  EXPECT_THROW(schedules_of("nccl-2.28", "ring", two, single_gpus(8)), std::invalid_argument);
}

}  // namespace
}  // namespace ghostrank
