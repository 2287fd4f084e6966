// How long a thread that had work to do did not run: other programs had its core, its cgroup had
// used up its CPU quota, or something had stopped it.
//
//   awake    ████░░███      wall time minus CPU time: ░ was taken from it
//   asleep   ───────┃░░░    ┃ the deadline of the wait; later than kWakes after it, work was due
//
// A wait that ends late before any deadline is not held up: nothing was due. lag_ns() tells how
// long messages that came meanwhile may have waited.
//
// Units: nanoseconds of this machine. Threading: one owner (a shard); the caller reads the clocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ghostrank {

class HeldUp {
 public:
  struct Instant {
    std::int64_t wall_ns = 0, cpu_ns = 0;  // CLOCK_MONOTONIC; CPU time of the thread
  };
  // An idle machine takes this long to wake a thread.
  static constexpr std::int64_t kWakes = 60'000;
  static constexpr std::int64_t kNoDeadline = -1;

  void begin(const Instant& now) {
    *this = HeldUp();
    awake_ = now;
  }

  // The thread is about to block, or ends.
  void rest(const Instant& now) {
    taken_ns_ +=
        std::max<std::int64_t>(0, (now.wall_ns - awake_.wall_ns) - (now.cpu_ns - awake_.cpu_ns));
    resting_ = now.wall_ns;
  }

  // The thread runs again. `deadline_ns`: when it should have run, by CLOCK_MONOTONIC, or
  // kNoDeadline. `interrupted`: EINTR ended the wait, as after SIGSTOP and SIGCONT.
  void wake(const Instant& now, std::int64_t deadline_ns, bool interrupted) {
    if (deadline_ns != kNoDeadline)
      overslept_ns_ += std::max<std::int64_t>(0, now.wall_ns - deadline_ns - kWakes);
    stopped_ns_ = interrupted ? now.wall_ns - resting_ : 0;
    slept_ns_ = now.wall_ns - resting_;
    awake_ = now;
  }

  // How long a message that came during the last wait may have waited for this thread: all of the
  // wait if it was interrupted, else the time `queued_ns` in which the thread could have run.
  std::int64_t lag_ns(std::int64_t queued_ns) const {
    return std::max(stopped_ns_, std::min(slept_ns_, queued_ns));
  }

  // Time lost while the thread was awake, and by waits that ended late.
  std::int64_t total_ns() const { return taken_ns_ + overslept_ns_; }
  std::int64_t taken_ns() const { return taken_ns_; }

 private:
  Instant awake_;
  std::int64_t resting_ = 0, taken_ns_ = 0, overslept_ns_ = 0, stopped_ns_ = 0, slept_ns_ = 0;
};

}  // namespace ghostrank
