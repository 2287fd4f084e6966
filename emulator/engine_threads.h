// The engine's threads during one segment: one for each shard. What a shard throws ends the run
// with a reason, not the process; whatever the owner meets meanwhile, the threads end before what
// they use.
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
  // Every shard prepares the segment. Everything given must outlive this object; a stop of
  // `control` stops the threads.
  EngineThreads(const std::vector<std::unique_ptr<Shard>>& shards, const Segment& segment,
                ShardShared& shared, Control& control);
  ~EngineThreads();  // stops those that play
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  void wait_until_prepared() { prepared_.wait(); }
  void go(const Clock& clock);  // once, when all have prepared
  void join();                  // shared.running is 0, or nearly

 private:
  void play(Shard& shard);
  template <typename Act>
  bool without_exception(Act&& act);
  void end_run() noexcept;
  void leave(bool well);

  const Segment& segment_;
  ShardShared& shared_;
  Control& control_;
  Clock clock_ = Clock::virtual_time();
  std::latch prepared_, go_{1};
  bool gone_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ghostrank
