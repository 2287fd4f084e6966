// What befalls packets on their way between nodes, on purpose (fabric.packets): some are lost, come
// twice or are overtaken. A pure function of (seed, segment, sender, number of its packet), so that
// every run in virtual time meets the same.
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

  // Of a segment that begins with iteration `first`; nothing has been sent.
  void begin(std::uint32_t first, std::size_t senders) {
    first_ = first;
    sent_.assign(senders, 0);
  }

  // How much later than it should each copy of the next packet of `sender` comes; kLost: there is
  // no such copy. `party`: the sender in the job. What was done is counted.
  std::array<Picoseconds, 2> next(std::size_t sender, Rank party, Picoseconds latency,
                                  PacketCounts& counts) {
    std::array<Picoseconds, 2> copies{0, kLost};
    RandomBits random({seed_, first_, static_cast<std::uint64_t>(party), ++sent_[sender]});
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
  static constexpr int kLateLatencies = 8;  // one that is overtaken comes at most so much later

  const PacketSpec& spec_;
  const std::uint64_t seed_;
  std::uint32_t first_ = 0;
  std::vector<std::uint64_t> sent_;  // by sender
};

}  // namespace ghostrank
