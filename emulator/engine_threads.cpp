#include "emulator/engine_threads.h"

#include <new>
#include <sys/prctl.h>
#include <system_error>

#include "profiles/job/key_error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kRoomForReason = 1024;

// Lets the kernel end this thread's waits on time: by default it delays them by up to 50 us to
// batch wake-ups.
void wake_on_time() { prctl(PR_SET_TIMERSLACK, 1UL); }

void stop_and_wake(ShardShared& shared) {
  shared.stop = true;
  for (Fabric* f : shared.fabrics) f->wake();
}

}  // namespace

EngineThreads::EngineThreads(const std::vector<std::unique_ptr<Shard>>& shards,
                             const Segment& segment, ShardShared& shared, Control& control,
                             const JobSpec& spec)
    : segment_(segment),
      shared_(shared),
      control_(control),
      spec_(spec),
      prepared_(static_cast<std::ptrdiff_t>(shards.size())) {
  threads_.reserve(shards.size());
  shared_.failure.reserve(kRoomForReason);  // so that out-of-memory can still be reported
  shared_.running = static_cast<int>(shards.size());
  control_.on_stop([&shared] { stop_and_wake(shared); });
  for (const auto& shard : shards) {
    const bool started =
        without_exception([&] { threads_.emplace_back([this, s = shard.get()] { play(*s); }); });
    if (started) continue;
    prepared_.count_down();
    leave(*shard, false);
  }
}

EngineThreads::~EngineThreads() {
  if (!threads_.empty()) {
    stop_and_wake(shared_);
    if (!gone_) go(clock_);
    join();
  }
  control_.on_stop({});
}

void EngineThreads::go(const Clock& clock) {
  clock_ = clock;
  gone_ = true;
  go_.count_down();
}

void EngineThreads::join() {
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void EngineThreads::play(Shard& shard) {
  wake_on_time();
  const bool prepared = without_exception([&] { shard.prepare(segment_, shared_); });
  prepared_.count_down();
  go_.wait();
  leave(shard, prepared && without_exception([&] { shard.play(clock_); }));
}

template <typename Act>
bool EngineThreads::without_exception(Act&& act) {
  try {
    act();
    return true;
  } catch (...) {
    end_run();
    return false;
  }
}

// Stores the exception in flight as the reason; the first reason stays.
void EngineThreads::end_run() noexcept {
  const std::lock_guard lock(shared_.mutex);
  std::string& reason = shared_.failure;
  if (reason.empty()) {
    shared_.of_fabric = false;
    try {
      throw;
    } catch (const std::bad_alloc&) {
      reason = kOutOfMemory;
      shared_.of_machine = true;
    } catch (const std::system_error& error) {
      reason.assign("an engine thread cannot be started: ").append(error.what());
      shared_.of_machine = true;
    } catch (const KeyError& error) {
      reason = spec_.source_of(error.key()) + ": " + error.what();
    } catch (const Error& error) {
      reason = error.what();
    } catch (const std::exception& error) {
      reason.assign("an engine thread failed: ").append(error.what());
    } catch (...) {
      reason = "an engine thread failed: unknown exception";
    }
  }
  stop_and_wake(shared_);
}

// A shard's last action in a segment.
void EngineThreads::leave(const Shard& shard, bool well) {
  // In virtual time the other shards meet between windows and would wait for this one for ever.
  if (!well) shared_.windows.leave(shard.index());
  const std::lock_guard lock(shared_.mutex);
  --shared_.running;
  shared_.changed.notify_one();
}

}  // namespace ghostrank
