#include "emulator/shard/shared.h"

namespace ghostrank {
namespace {

// Parcels per ring, as a power of two.
constexpr std::size_t kRingLog2 = 14;

}  // namespace

ShardShared::ShardShared(int count)
    : shards(count),
      window(count),
      next(static_cast<std::size_t>(count)),
      got_on(static_cast<std::size_t>(count)),
      mail(static_cast<std::size_t>(count * count)),
      quiet(static_cast<std::size_t>(count)) {
  for (int i = 0; i < count; ++i) asleep.push_back(std::make_unique<std::atomic<bool>>(false));
  for (int i = 0; i < count * count; ++i) {
    const bool to_another = i / count != i % count;
    rings.push_back(to_another ? std::make_unique<SpscRing<Parcel>>(kRingLog2) : nullptr);
  }
}

}  // namespace ghostrank
