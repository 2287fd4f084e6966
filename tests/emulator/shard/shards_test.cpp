// The meeting points of threads: rings, wake-ups, windows. Also built with ThreadSanitizer.
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "emulator/common/monotonic.h"
#include "emulator/common/spsc.h"
#include "tests/emulator/fabric/fabric_double.h"
#include "tests/emulator/shard/throwing.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;
using testing::Throws;

TEST(SpscRing, DeliversEverythingOnceAndInOrder) {
  SpscRing<std::unique_ptr<int>> ring(4);
  constexpr int kCount = 100'000;
  std::thread producer([&] {
    for (int i = 0; i < kCount; ++i) {
      auto value = std::make_unique<int>(i);
      while (!ring.try_push(value)) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kCount; ++i) {
    std::unique_ptr<int> value;
    while (!ring.try_pop(value)) std::this_thread::yield();
    ASSERT_EQ(*value, i);
  }
  producer.join();
}

TEST(SpscRing, RefusesWhatDoesNotFit) {
  SpscRing<int> ring(2);
  int value = 1;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.try_push(value));
  EXPECT_FALSE(ring.try_push(value));
  EXPECT_TRUE(ring.try_pop(value));
  EXPECT_TRUE(ring.try_push(value));
}

TEST(Shards, ExchangeRealDataOverMemory) {
  for (int shards : {2, 4}) {
    SmallJob job(4, 4, FabricKind::memory);
    job.spec.run.shards = shards;
    job.spec.run.verify = true;
    job.spec.run.iterations = 2;
    job.spec.collectives.credits = 2;
    job.spec.collectives.slice_bytes = 256;
    job.compute(kPicosPerMicro)
        .collective(Func::all_reduce, 5003)
        .collective(Func::all_to_all, 101);
    job.collective(Func::barrier, 0).collective(Func::broadcast, 77, DataType::int32, 5);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.iterations.size(), 2u);
    EXPECT_EQ(result.verify->wrong_elements, 0u);
    EXPECT_EQ(result.verify->checked_elements, 2u * 16u * (5003u + 16u * 101u + 77u));
  }
}

TEST(Shards, ManySmallMessagesFillTheRingsAndAllArrive) {
  SmallJob job(4, 8, FabricKind::memory);
  job.spec.run.shards = 4;
  job.spec.collectives.slice_bytes = 4;
  job.spec.run.verify = true;
  job.collective(Func::all_to_all, 600, DataType::int32);  // 600 slices per pair, all at once
  const Result result = job.run();
  EXPECT_EQ(result.interrupted, "");
  EXPECT_EQ(result.verify->wrong_elements, 0u);
  EXPECT_EQ(result.messages_per_iteration, 32.0 * 24 * 600);
}

// Notes how a shard waits, and stops the run after a hundred waits.
struct Waits : testing::FabricDouble {
  ShardShared* shared = nullptr;
  int all = 0, spun = 0;

  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) override {
    spun += timeout <= spin;
    shared->stop = ++all >= 100;
  }
};

// The other shard's thread takes nothing, as if it had no core.
TEST(Shards, SleepWhileTheRingOfAnotherOneIsFull) {
  SmallJob job(2, 1, FabricKind::memory);
  job.spec.run.shards = 2;
  job.spec.cluster.nic = {0, 0};
  job.spec.collectives.slice_bytes = 4;
  job.collective(Func::broadcast, 100'000, DataType::int32);
  const Cluster cluster(job.spec, job.workload, 1);
  const Flows flows(job.spec, job.workload, cluster);
  ShardShared shared(2);
  Waits fabric;
  fabric.shared = &shared;
  shared.fabrics = {&fabric, &fabric};
  Shard shard({job.spec, job.workload, cluster, Host(0), 0, flows, fabric});
  shard.prepare({}, shared);
  shard.play(Clock::real(monotonic_ns(), 1));
  EXPECT_EQ(shared.failure, "");
  EXPECT_EQ(fabric.all, 100);
  EXPECT_EQ(fabric.spun, 0);
}

TEST(Shards, NameADeadlockLongBeforeTheStallTimeout) {
  for (int shards : {1, 2}) {
    SmallJob job(4, 1, FabricKind::memory);
    job.spec.run.shards = shards;
    job.spec.run.stall_timeout_s = 60;
    Op recv;
    recv.kind = Op::Kind::recv;
    recv.peer = 1;
    recv.count = 1;
    job.program().streams[0] = {recv};
    const Result result = job.run();
    EXPECT_LT(result.played_wall_seconds, job.spec.run.stall_timeout_s / 2);
    EXPECT_TRUE(result.interrupted.find("deadlock: rank 0 on host 0 in send_recv #0") !=
                std::string::npos)
        << result.interrupted;
  }
}

// The other threads wait at the barrier of virtual time, or sleep until messages come that never
// do.
void expect_end(Throws what, std::size_t iterations, const std::string& reason) {
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    for (const int shards : {1, 2, 4}) {
      SmallJob job = testing::throwing_job(GHOSTRANK_THROWS_PLUGIN, kind, what);
      job.spec.run.shards = shards;
      const auto control = Control::meet(World{});
      const Result result = job.run(*control);
      EXPECT_EQ(control->stop(), what == Throws::of_memory ? Stop::machine : Stop::failed);
      EXPECT_NE(result.interrupted.find(reason), std::string::npos) << result.interrupted;
      EXPECT_EQ(result.iterations.size(), iterations) << shards;
    }
  }
}

TEST(Shards, AnExceptionEndsTheRunWithItsReasonAndWhatWasDoneIsKept) {
  expect_end(Throws::halfway, 1, "no step 300");
}

TEST(Shards, AnExceptionBeforeTheStartEndsTheRunToo) {
  expect_end(Throws::at_once, 0, "no first step");
}

TEST(Shards, WantOfMemoryEndsTheRunSayingWhatToDo) {
  expect_end(Throws::of_memory, 1, "out of memory: ");
}

// The observer's thread passes the exception to the caller after the engine's threads have ended.
TEST(Shards, AnExceptionOfTheObserverEndsTheThreadsAndReachesTheCaller) {
  struct Throwing : Observer {
    void on_iteration(int, const IterationReport&) override { throw std::runtime_error("enough"); }
  };
  for (const FabricKind kind : {FabricKind::memory, FabricKind::virtual_time}) {
    for (const int shards : {1, 4}) {
      SmallJob job(4, 1, kind);
      job.spec.run.shards = shards;
      job.spec.run.iterations = 500;
      job.compute(kPicosPerMilli).collective(Func::all_reduce, 100);
      Throwing observer;
      EXPECT_THROW(job.run(&observer), std::runtime_error);
    }
  }
}

TEST(Shards, WhateverIsThrownEndsTheRun) { expect_end(Throws::something, 1, "unknown exception"); }

}  // namespace
}  // namespace ghostrank
