#include "emulator/shard/shared/shared.h"

#include <algorithm>
#include <chrono>

#include "emulator/host/cores.h"

namespace ghostrank {
namespace {

// Parcels per ring, as a power of two.
constexpr std::size_t kRingLog2 = 14;
// Windows take microseconds. A shard that comes later than this may not be running.
constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(25), kNoTime{0};

}  // namespace

ShardShared::ShardShared(int count)
    : shards(count),
      windows(count, count == 1 ? kNoTime : std::min(kSpin, awake_before_sleep(count))),
      players(static_cast<std::size_t>(count)),
      quiet(static_cast<std::size_t>(count)) {
  for (int i = 0; i < count; ++i) asleep.push_back(std::make_unique<std::atomic<bool>>(false));
  for (int i = 0; i < count * count; ++i) {
    const bool to_another = i / count != i % count;
    rings.push_back(to_another ? std::make_unique<SpscRing<Parcel>>(kRingLog2) : nullptr);
  }
}

}  // namespace ghostrank
