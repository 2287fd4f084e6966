// A fabric that accepts every message, delivers none and never fails, for tests to override; and a
// shard that plays over it.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "emulator/fabric/fabric.h"
#include "emulator/shard/shard.h"
#include "emulator/traffic/flows.h"
#include "tests/emulator/support.h"

namespace ghostrank::testing {

class FabricDouble : public Fabric {
 public:
  bool try_send(int, Message&) override { return true; }
  int poll(std::vector<Message>&) override { return 0; }
  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds) override {
    std::this_thread::sleep_for(timeout);
  }
  void watch(int) override {}
  void wake() override {}
  bool idle() const override { return true; }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return {}; }

 private:
  std::string failure_;
};

// Plays host 0's part of a job of two hosts; returns the error, or "" if there was none.
inline std::string play_first_of_two_hosts(const SmallJob& job, Fabric& fabric) {
  const Cluster cluster(job.spec, job.workload, 2);
  const Flows flows(job.spec, job.workload, cluster);
  Shard shard({job.spec, job.workload, cluster, Host(0), 0, flows, fabric, 0, {}, 0, "", {}});
  ShardShared shared(1);
  shared.fabrics = {&fabric};
  shard.prepare({}, shared);
  shard.play(Clock::real(monotonic_ns(), 1));
  return shared.failure;
}

}  // namespace ghostrank::testing
