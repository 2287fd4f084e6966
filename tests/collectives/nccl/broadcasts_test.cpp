// An all-gather-v on NCCL, in numbers worked out by hand from its rules.
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/group.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

constexpr std::uint64_t kKi = 1024, kMi = 1024 * kKi;

Collective gather_of(std::vector<std::uint64_t> counts, std::uint32_t element_bytes = 1) {
  Collective c{Func::all_gather_v, static_cast<int>(counts.size()), 0, element_bytes, 0};
  c.counts = std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
  return c;
}

// One GPU a node: 4 channels, rings in the order of the ranks.
Communicator single_gpus_simple(int nodes) {
  Communicator comm;
  comm.node = "hgx-h100-400g";
  comm.channels = 0;
  comm.node_of = nodes_of(nodes, 1);
  comm.environment = {{"NCCL_PROTO", "simple"}};
  return comm;
}

std::unique_ptr<Schedule> made(const char* library, const Collective& c, const Communicator& comm) {
  return find_algorithm(library, Func::all_gather_v, "auto")->make(c, comm);
}

// KiB of the messages that a rank sends, by channel.
using Sends = std::map<int, std::vector<std::uint64_t>>;
Sends sends(const Schedule& schedule, GroupRank r) {
  Sends out;
  for (int a = 0; a < schedule.actors(r); ++a)
    for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
      const Step step = schedule.step(r, a, k);
      if (!step.send_to.empty())
        out[schedule.actor(r, a).channel].push_back(step.send.count *
                                                    schedule.collective().element_bytes / kKi);
    }
  return out;
}

// 4 MiB of traffic on 4 channels: 1 MiB each. The block of 1 MiB comes first and fills channel 0.
TEST(NcclBroadcasts, AreOnePlanWhoseCallsShareTheChannels) {
  const auto schedule = made("nccl-2.28", gather_of({3 * kMi, 1 * kMi, 0}), single_gpus_simple(3));
  EXPECT_EQ(schedule->played(), "broadcasts/Simple");
  EXPECT_EQ(sends(*schedule, 0), (Sends{{1, {512, 512}}, {2, {512, 512}}, {3, {512, 512}}}));
  EXPECT_EQ(sends(*schedule, 1),
            (Sends{{0, {512, 512}}, {1, {512, 512}}, {2, {512, 512}}, {3, {512, 512}}}));
  EXPECT_EQ(sends(*schedule, 2), (Sends{{0, {512, 512}}}));
}

// Every channel has a quarter of both blocks: 768 KiB of rank 0's, which is two chunks, and 256 KiB
// of rank 1's. A rank begins with its own, and then goes up the ring.
TEST(NcclBroadcasts, TakeTurnsOnEveryChannelInTheNewerVersion) {
  const auto schedule = made("nccl-2.30", gather_of({3 * kMi, 1 * kMi, 0}), single_gpus_simple(3));
  EXPECT_EQ(schedule->played(), "broadcasts/Simple");
  const auto everywhere = [](const std::vector<std::uint64_t>& messages) {
    return Sends{{0, messages}, {1, messages}, {2, messages}, {3, messages}};
  };
  EXPECT_EQ(sends(*schedule, 0), everywhere({512, 256}));
  EXPECT_EQ(sends(*schedule, 1), everywhere({256, 512, 256}));
  EXPECT_EQ(sends(*schedule, 2), everywhere({256}));
}

// Parts end at multiples of 256 bytes: 1 MiB + 4 bytes in quarters of 262,145 bytes.
TEST(NcclBroadcasts, AreCutAtLinesInTheNewerVersion) {
  const auto schedule =
      made("nccl-2.30", gather_of({kMi / 4 + 1, kMi / 4 + 1}, 4), single_gpus_simple(2));
  std::vector<std::uint64_t> bytes;
  for (int a = 0; a < schedule->actors(0); ++a)
    bytes.push_back(schedule->step(0, a, 0).send.count * 4);
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{262'400, 262'144, 262'144, 261'892}));
}

TEST(NcclBroadcasts, OfOneBlockAreABroadcast) {
  for (const char* library : kLibraries) {
    const Communicator comm = single_gpus_simple(4);
    const auto schedule = made(library, gather_of({0, 0, 5 * kMi, 0}), comm);
    const auto broadcast = find_algorithm(library, Func::broadcast, "auto")
                               ->make({Func::broadcast, 4, 5 * kMi, 1, 2}, comm);
    for (GroupRank r = 0; r < 4; ++r) EXPECT_EQ(sends(*schedule, r), sends(*broadcast, r));
  }
}

TEST(NcclBroadcasts, AreRightForEveryGroup) {
  for (const char* library : kLibraries)
    for (const int size : {1, 2, 3, 5, 8, 12, 16, 24})
      for (const int per_node : {1, 2, 4, 8})
        for (const std::uint64_t most : {1, 5, 1000, 300'000})
          for (const char* protocol : {"simple", "ll", "ll128"}) {
            if (most == 300'000 && size > 5) continue;
            std::vector<std::uint64_t> counts;
            for (int r = 0; r < size; ++r)
              counts.push_back(r % 3 == 1 ? 0 : most * static_cast<std::uint64_t>(r * 5 % 7) / 4);
            Communicator comm;
            comm.channels = 0;
            comm.node = per_node == 1 ? "one-gpu-400g" : "hgx-h100-400g";
            comm.node_of = nodes_of(size, per_node);
            comm.environment = {{"NCCL_PROTO", protocol}};
            const Collective c = gather_of(counts, 4);
            const CheckReport report = prove(library, "broadcasts", c, comm);
            const Cost cost = find_algorithm(library, c.func, "auto")->cost(c);
            EXPECT_GE(report.messages, cost.messages);
            if (HasFailure()) return;
          }
}

TEST(NcclBroadcasts, AreProvedOnOneChannelWithTheirClosedForm) {
  for (const char* library : kLibraries)
    for (int size = 1; size <= 16; ++size) {
      const Collective c = gather_of(std::vector<std::uint64_t>(static_cast<std::size_t>(size), 7));
      const CheckReport report = prove(library, "broadcasts", c, communicator(1));
      const Cost cost = find_algorithm(library, c.func, "auto")->cost(c);
      EXPECT_EQ(report.messages, cost.messages) << size;
      EXPECT_LE(report.rounds, cost.steps) << size;
    }
}

TEST(NcclBroadcasts, RefuseWhatTheyAreNot) {
  Communicator comm = single_gpus_simple(2);
  comm.environment.clear();
  // NCCL would send the small block by LL and the large one by Simple.
  EXPECT_THROW(made("nccl-2.28", gather_of({64, 256 * kMi}), comm), std::invalid_argument);
  EXPECT_NO_THROW(made("nccl-2.30", gather_of({64, 256 * kMi}), comm));
  // 2.28 has at most 200 channels in a launch, and each block takes one; 2.30 has 169 blocks.
  for (const auto& [library, most] : {std::pair("nccl-2.28", 200), std::pair("nccl-2.30", 169)})
    for (const int ranks : {most, most + 1}) {
      const Collective c = gather_of(std::vector<std::uint64_t>(ranks, 64));
      if (ranks == most) {
        EXPECT_NO_THROW(made(library, c, single_gpus_simple(ranks))) << library;
      } else {
        EXPECT_THROW(made(library, c, single_gpus_simple(ranks)), std::invalid_argument) << library;
      }
    }
}

}  // namespace
}  // namespace ghostrank
