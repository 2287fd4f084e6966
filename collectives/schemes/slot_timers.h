// Time-outs of the packets that a rank has in flight, one per slot. One timer of the agent ticks
// for all slots, kTicks times per time-out, so that a slot costs no event; a packet is sent again
// at most a tick late. After kPatience time-outs in a call, the time-out doubles: answers are late
// rather than lost.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

class SlotTimers {
 public:
  SlotTimers(int slots, Picoseconds timeout)
      : tick_(timeout / kTicks), ticks_(static_cast<std::size_t>(slots)) {}

  void start_call() { time_outs_ = 0, slower_ = 1; }
  void arm(Io& io) const { io.arm(0, tick_); }
  void sent(std::size_t slot) { ticks_[slot] = 0; }
  // Counts a tick of a slot that awaits an answer; true: send its packet again.
  bool expired(std::size_t slot) {
    if (++ticks_[slot] < kTicks * slower_) return false;
    if (++time_outs_ % kPatience == 0 && slower_ < kSlowest) slower_ *= 2;
    return true;
  }

 private:
  static constexpr int kTicks = 4;
  static constexpr std::uint32_t kPatience = 100;
  static constexpr int kSlowest = 1 << 20;

  Picoseconds tick_;
  std::vector<int> ticks_;  // by slot: since its last packet was sent
  std::uint32_t time_outs_ = 0;
  int slower_ = 1;
};

}  // namespace ghostrank
