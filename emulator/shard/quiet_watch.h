// Since when a shard stands still, as stalls.h defines it: from its last event or, while it knows
// of a delay that is still to end, from the end of that delay.
//
// Units: emulated time. Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/shard/stalls.h"

namespace ghostrank {

class QuietWatch {
 public:
  // Of a segment. Being quiet longer than `threshold` is a gap.
  void begin(Picoseconds threshold) {
    *this = QuietWatch();
    threshold_ = threshold;
  }

  // Something happened at `now`. True: that it was quiet had been told, and is so no more.
  bool note_progress(Picoseconds now) {
    if (now - since() > threshold_) gaps_.push_back({since(), now});
    progressed_ = now;
    awaited_ = 0;
    return std::exchange(told_, false);
  }

  // Nothing is to be done at `now`, and the next delay ends at `next` (0: none is known). Since
  // when it is quiet, if that should be told now.
  std::optional<Picoseconds> note_rest(Picoseconds next, Picoseconds now) {
    awaited_ = next;
    if (told_ || now - since() <= threshold_) return {};
    told_ = true;
    return since();
  }

  // From `now` on nobody waits for it.
  void note_end(Picoseconds now) { gaps_.push_back({now, kEndless}); }

  // In order and apart.
  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  Picoseconds since() const { return std::max(progressed_, awaited_); }

  Picoseconds threshold_ = kEndless;
  Picoseconds progressed_ = 0, awaited_ = 0;  // last event; end of the delay that comes next
  bool told_ = false;
  std::vector<Gap> gaps_;
};

}  // namespace ghostrank
