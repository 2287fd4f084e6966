// The engine's threads during one segment, one per shard. An exception in a shard ends the run with
// a reason, not the process. If the owner throws, the threads end before the objects that they use.
//
// Threading: one owner thread, the one that owns `control`.
#pragma once

#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/shard/shard.h"

namespace ghostrank {

class EngineThreads {
 public:
  // Starts the threads, which prepare the segment. All arguments must outlive this object; a stop
  // of `control` stops the threads.
  EngineThreads(const std::vector<std::unique_ptr<Shard>>& shards, const Segment& segment,
                ShardShared& shared, Control& control, const JobSpec& spec);
  ~EngineThreads();  // stops and joins threads that still run
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  void wait_until_prepared() { prepared_.wait(); }
  void go(const Clock& clock);  // starts emulated time; call it once, when all have prepared
  void join();  // waits until the threads have exited; call after shared.running became 0

 private:
  void play(Shard& shard);
  template <typename Act>
  bool without_exception(Act&& act);
  void end_run() noexcept;
  void leave(const Shard& shard, bool well);

  const Segment& segment_;
  ShardShared& shared_;
  Control& control_;
  const JobSpec& spec_;
  Clock clock_ = Clock::virtual_time();
  std::latch prepared_, go_{1};
  bool gone_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ghostrank
