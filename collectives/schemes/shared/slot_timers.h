// Time-outs of the packets that a rank has in flight, one per slot. One timer of the agent ticks
// for all slots, kTicks times per time-out, so that a slot costs no event; a packet is sent again
// when its time-out is over, never before, and at most a tick later. Where hardly a packet is
// answered in time, answers are late rather than lost, and the time-out doubles; after many that
// are, it halves. So losses cost a time-out each, however many there are in a call, also where all
// slots await one at once, and where a loss at any of several workers holds up all of them.
// SlotTimers also keeps how long each slot's packet has waited in all.
//
// Threading: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

class SlotTimers {
 public:
  SlotTimers(int slots, Picoseconds timeout)
      : tick_((timeout + kTicks - 1) / kTicks),
        slowest_(static_cast<int>(std::clamp<Picoseconds>(
            kLongest / std::max<Picoseconds>(timeout, 1), kSlowest, kMostTimes))),
        ticks_(static_cast<std::size_t>(slots)),
        ages_(static_cast<std::size_t>(slots)),
        late_(static_cast<std::size_t>(slots)) {}

  void start_call() {
    lateness_ = in_time_ = 0, slower_ = 1;
    trust_ = std::max(kTrust * static_cast<int>(ticks_.size()), kLeastTrust);
    std::ranges::fill(late_, 1);
  }
  void arm(Io& io) const { io.arm(0, tick_); }
  void sent(std::size_t slot) { ticks_[slot] = 0; }
  // The slot has a new packet, or its packet counts as new.
  void begin(std::size_t slot) {
    ages_[slot] = 0;
    if (std::exchange(late_[slot], 0) != 0) return;  // sent again, or there was none
    lateness_ = std::max(lateness_ - kWorth, -trust_);
    if (slower_ == 1 || ++in_time_ < kMany) return;
    lateness_ = in_time_ = 0;
    slower_ /= 2;
  }
  int age(std::size_t slot) const { return ages_[slot]; }  // ticks since begin()
  int ticks_in(Picoseconds time) const {
    return static_cast<int>(
        std::clamp<Picoseconds>((time + tick_ - 1) / std::max<Picoseconds>(tick_, 1), 0,
                                std::numeric_limits<int>::max() / 2));
  }
  // Counts a tick of a slot that awaits an answer; true: send its packet again.
  bool expired(std::size_t slot) {
    if (ages_[slot] < std::numeric_limits<int>::max()) ++ages_[slot];
    // The first tick after sent() may come at once: it ends no whole one.
    if (++ticks_[slot] <= kTicks * slower_) return false;
    late_[slot] = 1;
    if (++lateness_ >= kPatience) {
      lateness_ = in_time_ = trust_ = 0;
      slower_ = std::min(2 * slower_, slowest_);
    }
    return true;
  }

  static constexpr int kTicks = 4;  // of a time-out

 private:
  // Time-outs until it doubles, and answers in time until it halves. Such an answer makes up for
  // kWorth time-outs: with eight workers, each of which loses a tenth of its packets, two of three
  // are sent again, some of these several times. Until it has doubled in a call, answers make up
  // for kTrust time-outs of every slot to come, because slots often wait at once.
  static constexpr int kPatience = 100, kMany = 1000, kWorth = 15, kTrust = 4, kLeastTrust = 500;
  // A time-out becomes 64 times as long, or as long as the default one. If it stayed below the
  // round trip of a whole window, packets would be sent faster than they pass, for ever.
  static constexpr int kSlowest = 64, kMostTimes = 1 << 20;
  static constexpr Picoseconds kLongest = 10'000'000'000;

  Picoseconds tick_;
  int slowest_;                    // times the time-out
  std::vector<int> ticks_, ages_;  // by slot: since its packet was last sent, and since begin()
  // By slot: whether its packet has timed out, or there has been none in the call.
  std::vector<char> late_;
  int lateness_ = 0;  // time-outs, less the worth of answers in time; 0 when the time-out changes
  int trust_ = 0;     // how far answers in time may bring it below 0
  int in_time_ = 0;   // such answers since then, while it is longer than it should be
  int slower_ = 1;
};

}  // namespace ghostrank
