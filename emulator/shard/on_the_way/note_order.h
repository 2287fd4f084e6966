// When the last reliable note between two NICs is in, where the receiver's NIC may take longer for
// a note than the sender's: a short note that leaves behind a long one would otherwise be in before
// it, and reliable notes keep their order (collectives/agent.h).
//
// Units: emulated picoseconds. Memory: pairs of NICs with notes on their way, and at most 1,024 or
// as many again without. Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "collectives/common/number.h"
#include "profiles/units.h"

namespace ghostrank {

class NoteOrder {
 public:
  void clear() { last_.clear(); }

  // Returns when a note is in that would be in at `at`, were it alone. Called in the order in which
  // the notes leave; `now`: no note that leaves later is in before this time.
  Picoseconds in(Nic from, Nic to, Picoseconds at, Picoseconds now) {
    Picoseconds& last = last_[static_cast<std::uint64_t>(from.value()) << 32 |
                              static_cast<std::uint32_t>(to.value())];
    last = std::max(last, at);
    const Picoseconds in = last;
    if (last_.size() >= sweep_at_) {
      std::erase_if(last_, [now](const auto& entry) { return entry.second <= now; });
      sweep_at_ = std::max(kSweepAt, 2 * last_.size());
    }
    return in;
  }

 private:
  static constexpr std::size_t kSweepAt = 1024;

  std::unordered_map<std::uint64_t, Picoseconds> last_;
  std::size_t sweep_at_ = kSweepAt;
};

}  // namespace ghostrank
