// Since when a shard is quiet, as stalls.h defines it: from its last event or, while it knows of a
// pending delay, from the end of that delay.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/shard/measured/stalls.h"

namespace ghostrank {

class QuietWatch {
 public:
  // Begins a segment. Quiet times longer than `threshold` are gaps.
  void begin(Picoseconds threshold) {
    *this = QuietWatch();
    threshold_ = threshold;
  }

  // Notes that something happened at `now`. Returns true when the shard had reported itself quiet
  // and no longer is.
  bool note_progress(Picoseconds now) {
    if (now - since() > threshold_) gaps_.push_back({since(), now});
    progressed_ = now;
    awaited_ = 0;
    return std::exchange(told_, false);
  }

  // Notes that nothing is to be done at `now` and that the next delay ends at `next` (0: no delay
  // is known). Returns since when the shard is quiet, if it should report that now.
  std::optional<Picoseconds> note_rest(Picoseconds next, Picoseconds now) {
    awaited_ = next;
    if (told_ || now - since() <= threshold_) return {};
    told_ = true;
    return since();
  }

  // Whether nothing has happened for so long that the shard may soon be reported quiet.
  bool lasts(Picoseconds now) const { return now - progressed_ > threshold_ / 4; }

  // From `now` on no other shard waits for this one.
  void note_end(Picoseconds now) { gaps_.push_back({now, kEndless}); }

  // In order and disjoint.
  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  Picoseconds since() const { return std::max(progressed_, awaited_); }

  Picoseconds threshold_ = kEndless;
  Picoseconds progressed_ = 0, awaited_ = 0;  // last event; end of the next delay
  bool told_ = false;
  std::vector<Gap> gaps_;
};

}  // namespace ghostrank
