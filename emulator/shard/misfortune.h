// Loses, duplicates and delays packets between nodes on purpose (fabric.packets). What happens to a
// packet is a pure function of (seed, first iteration of the segment, sender, number of the
// packet), so every virtual-time run loses the same packets.
//
// Units: emulated picoseconds. Threading: one owner (a shard).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/common/random.h"
#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

class Misfortune {
 public:
  static constexpr Picoseconds kLost = -1;

  Misfortune(const PacketSpec& spec, std::uint64_t seed) : spec_(spec), seed_(seed) {}

  // Begins a segment whose first iteration is `first`: no sender has sent a packet yet.
  void begin(std::uint32_t first, std::size_t senders) {
    first_ = first;
    sent_.assign(senders, 0);
  }

  // Returns for each of two copies of the sender's next packet how much later than normal it
  // arrives; kLost: no such copy arrives. `sender`: local index; `party`: the sender; `latency`:
  // between the two NICs. Counts in `counts` what it did.
  std::array<Picoseconds, 2> next(std::size_t sender, WorldParty party, Picoseconds latency,
                                  PacketCounts& counts) {
    std::array<Picoseconds, 2> copies{0, kLost};
    RandomBits random({seed_, first_, party.index(), ++sent_[sender]});
    if (random.unit() < spec_.loss) copies[0] = kLost;
    if (random.unit() < spec_.duplicates) copies[1] = 0;
    counts.lost_on_purpose += copies[0] < 0;
    counts.doubled_on_purpose += copies[1] == 0;
    for (Picoseconds& copy : copies) {
      if (copy != 0 || random.unit() >= spec_.reordering) continue;
      copy =
          static_cast<Picoseconds>(random.unit() * static_cast<double>(kLateLatencies * latency));
      ++counts.delayed_on_purpose;
    }
    return copies;
  }

 private:
  static constexpr int kLateLatencies = 8;  // upper bound of a copy's delay

  const PacketSpec& spec_;
  const std::uint64_t seed_;
  std::uint32_t first_ = 0;
  std::vector<std::uint64_t> sent_;  // packets, by sender
};

}  // namespace ghostrank
