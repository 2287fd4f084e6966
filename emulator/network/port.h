// The LogGP model of one NIC or NVLink port: what leaves is serialised at the port's rate behind
// what left before, what arrives likewise behind what arrived before. The same arithmetic paces
// real sends (a message may go when its turn ideally begins), models delays on the memory fabric
// and is the virtual network.
//
// Absolute deadlines: a port remembers until when it is taken, so rounding and lateness never add
// up. Units: emulated picoseconds, bytes. Threading: one owner (the shard of the port's node).
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiles/job/job.h"
#include "profiles/units.h"

namespace ghostrank {

struct LinkSpeed {
  double ps_per_byte = 0;  // 0: unlimited
  Picoseconds latency = 0;
  Framing framing{};  // what it carries besides a message

  bool limited() const { return ps_per_byte > 0; }

  static LinkSpeed from_rate(double bits_per_second, Picoseconds latency, Framing framing = {}) {
    return {bits_per_second > 0 ? 8e12 / bits_per_second : 0, latency, framing};
  }
  Picoseconds serialise(std::uint64_t bytes) const {
    if (!limited()) return 0;
    if (!framing.none()) [[unlikely]]
      bytes = framing.on_wire(bytes);
    const auto size = static_cast<std::int64_t>(bytes);  // quicker to turn into a double
    return static_cast<Picoseconds>(static_cast<double>(size) * ps_per_byte + 0.5);
  }
};

struct Port {
  Picoseconds egress_free = 0;
  Picoseconds ingress_free = 0;
  Picoseconds queued_until = -1;  // when the last message that had to queue for ingress is in

  // Takes the egress for `duration`, no earlier than `at`; returns when it begins.
  Picoseconds take_egress(Picoseconds at, Picoseconds duration) {
    const Picoseconds start = std::max(at, egress_free);
    egress_free = start + duration;
    return start;
  }

  // The last byte arrives at `tail` on an idle ingress; returns when it really is in.
  Picoseconds take_ingress(Picoseconds tail, Picoseconds duration) {
    ingress_free = std::max(tail, ingress_free + duration);
    return ingress_free;
  }

  // Whether a message whose tail came at `tail` and that is in at `in` must queue: it is not in
  // yet, or another one, which came before it, is to be told of at the same time.
  bool must_queue(Picoseconds tail, Picoseconds in) {
    if (in <= tail && queued_until != in) return false;
    queued_until = in;
    return true;
  }
};

}  // namespace ghostrank
