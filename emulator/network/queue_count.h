// Counts of a port's queue, where packets are played (fabric.network: packet).
//
// Units: bytes, emulated picoseconds. Threading: a value.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiles/units.h"

namespace ghostrank {

struct QueueCount {
  std::uint64_t packets = 0;  // that left the port
  std::uint64_t again = 0;    // of these, of a NIC: packets that it had sent before
  std::uint64_t drops = 0;    // packets to it that the switch had no room for
  std::uint64_t marks = 0;    // packets that it marked
  std::uint64_t pauses = 0;   // times that it was told to pause
  std::uint64_t longest = 0;  // bytes in its queue, at most
  Picoseconds paused = 0;     // how long in all
  void merge(const QueueCount& other) {
    packets += other.packets;
    again += other.again;
    drops += other.drops;
    marks += other.marks;
    pauses += other.pauses;
    longest = std::max(longest, other.longest);
    paused += other.paused;
  }
};

}  // namespace ghostrank
