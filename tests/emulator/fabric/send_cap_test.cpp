// safety.max_rate_per_nic: the arithmetic of the cap, and the dilation that a job needs below it.
#include "emulator/fabric/send_cap.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/assemble/send_limit.h"
#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr std::int64_t kMs = 1'000'000;

struct Handed {
  std::int64_t at_ns = 0;
  double bytes = 0;
};

// Looks every `every_ns` for a second whether `bytes` more may leave.
std::vector<Handed> greedy(SendCap& cap, std::uint64_t bytes, std::int64_t every_ns) {
  std::vector<Handed> handed;
  for (std::int64_t now = 5'000 * kMs; now < 6'000 * kMs; now += every_ns) {
    while (cap.is_open(now)) {
      cap.sent(bytes, 0, now);
      handed.push_back({now, static_cast<double>(bytes)});
    }
  }
  return handed;
}

TEST(SendCap, BoundsWhatLeavesInEveryWindow) {
  constexpr double kBps = 1e9;
  for (const std::uint64_t bytes : {64ULL << 10, 1ULL << 20}) {
    SendCap cap(kBps, 1500);
    const std::vector<Handed> handed = greedy(cap, bytes, 20'000);
    for (std::size_t from = 0; from < handed.size(); ++from) {
      double sum = 0;
      for (std::size_t to = from; to < handed.size(); ++to) {
        sum += handed[to].bytes;
        const auto window = static_cast<double>(handed[to].at_ns - handed[from].at_ns + kMs);
        ASSERT_LE(8 * (sum - handed[to].bytes), kBps * window * 1e-9) << from << " to " << to;
      }
    }
    double all = 0;
    for (const Handed& h : handed) all += h.bytes;
    EXPECT_GT(8 * all, 0.97 * cap.stream_bps()) << "a second at the cap";
    EXPECT_LE(8 * all, cap.stream_bps() * 1.001 + 8 * static_cast<double>(bytes));
  }
}

TEST(SendCap, CountsHeadersOfFramesAndLeavesAReserve) {
  const SendCap small(1e9, 1500), large(1e9, 9000);
  EXPECT_LT(small.stream_bps(), 0.97 * 1e9 * 1428 / 1514 + 1);
  EXPECT_GT(large.stream_bps(), small.stream_bps());
  EXPECT_LT(large.stream_bps(), 0.97e9);
  SendCap cap(1e9, 1500);
  cap.sent(1, 0, 0);
  const std::int64_t one = cap.opens_ns();
  EXPECT_NEAR(static_cast<double>(one), 8 * (1 + 86) / 0.97, 1) << "a byte is a frame";
  // A datagram is one frame, however large it is.
  SendCap packets(1e9, 1500);
  packets.sent(2 * 1472, 2, 0);
  EXPECT_NEAR(static_cast<double>(packets.opens_ns()), 8 * 2 * (1472 + 62) / 0.97, 1);
  EXPECT_NEAR(packets.datagrams_bps(1472, 1440, 32), 0.97e9 * 1440 / (1472 + 62 + 32 + 62), 1);
  SendCap small_packets(1e9, 1500);
  small_packets.sent(10, 10, 0);
  EXPECT_NEAR(static_cast<double>(small_packets.opens_ns()), 8 * 10 * (1 + 62) / 0.97, 1);
}

TEST(SendCap, IsOneForAllThatUseAnInterface) {
  const auto one = send_cap_of("", "127.0.0.1", 1e9), other = send_cap_of("", "127.0.0.1", 1e9);
  EXPECT_EQ(one, other);
  EXPECT_NE(one, send_cap_of("", "127.0.0.1", 2e9));
}

// Two hosts of two nodes with two NICs each.
SmallJob all_reduce(double rate_bps) {
  SmallJob job(4, 2, FabricKind::ofi);
  job.spec.cluster.nic.rate_bps = rate_bps;
  job.spec.max_nic_bps = 1e9;
  return job.compute(kPicosPerMilli).collective(Func::all_reduce, 10'000'000);
}

double needed(const SmallJob& job, int processes = 2) {
  return dilation_of_cap(job.spec, plan_traffic(job.spec, job.workload), processes, 1e9);
}

TEST(ASendLimit, IsTheDilationAtWhichTheNicsOfAnInterfaceFitTogether) {
  SmallJob job = all_reduce(10e9);
  // The rings of two channels leave each host by one NIC each.
  EXPECT_NEAR(needed(job), 20, 0.01);
  EXPECT_EQ(needed(job, 1), 0) << "nothing leaves the process";
  job.spec.collectives.algorithm(Func::all_reduce) = "recursive_doubling";
  EXPECT_NEAR(needed(job), 40, 0.01) << "all four NICs of a host send";
  job.spec.hosts = {{"a", "", {{"eth0", 0}, {"eth1", 1}}}, {"b", "", {{"eth0", 0}, {"eth1", 1}}}};
  EXPECT_NEAR(needed(job), 20, 0.01) << "by rail";
  job.spec.max_nic_bps = 0;
  EXPECT_EQ(needed(job), 0);
}

TEST(ASendLimit, OfUnlimitedNicsIsWhatAStepSendsOnAverage) {
  SmallJob job = all_reduce(0);
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  // 2 * 7/8 of 40 MB over one NIC.
  EXPECT_NEAR(needed(job), 8 * 70e6 / plan.step_seconds_at_least / 1e9, 0.1);
}

TEST(ASendLimit, RefusesASmallerDilationAndNamesTheLeast) {
  SmallJob job = all_reduce(10e9);
  job.spec.dilation = 12;
  check_cap(job.spec, 10);
  job.spec.dilation = 0;
  check_cap(job.spec, 1e6);
  job.spec.dilation = 8;
  try {
    check_cap(job.spec, 10.01);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_NE(std::string(error.what()).find("the least dilation that fits is 11"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ghostrank
