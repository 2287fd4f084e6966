// The LogGP model of one NIC or NVLink port. The port serialises at its rate each message that
// leaves, behind those that left before, and likewise each message that arrives. The same
// arithmetic paces real sends (a message may leave when its turn ideally begins), models delays on
// the memory fabric and is the virtual network.
//
// Deadlines are absolute: a port remembers until when it is busy, so rounding and lateness never
// add up. A message that waits for a port takes over the slip of the message that keeps it busy,
// because that lateness delays it too. Units: emulated picoseconds, bytes. Threading: one owner
// (the shard of the port's node).
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/common/moment.h"
#include "profiles/job/job.h"
#include "profiles/units.h"

namespace ghostrank {

struct LinkSpeed {
  double ps_per_byte = 0;  // 0: unlimited
  Picoseconds latency = 0;
  Framing framing{};  // bytes that the network adds to a message

  bool limited() const { return ps_per_byte > 0; }

  static LinkSpeed from_rate(double bits_per_second, Picoseconds latency, Framing framing = {}) {
    return {bits_per_second > 0 ? 8e12 / bits_per_second : 0, latency, framing};
  }
  Picoseconds serialise(std::uint64_t bytes) const {
    if (!limited()) return 0;
    if (!framing.none()) [[unlikely]]
      bytes = framing.on_wire(bytes);
    const auto size = static_cast<std::int64_t>(bytes);  // int64 converts to double faster
    return static_cast<Picoseconds>(static_cast<double>(size) * ps_per_byte + 0.5);
  }
};

struct Port {
  Moment egress_free;
  Moment ingress_free;
  // When the last message that had to queue for the ingress is in.
  Picoseconds queued_until = -1;

  // Takes the egress for `duration`, no earlier than `at`. Returns when the turn begins.
  Moment take_egress(const Moment& at, Picoseconds duration) {
    const Moment start = later(at, egress_free);
    egress_free = {start.at + duration, start.slip};
    return start;
  }

  // Takes the ingress for a message whose last byte arrives at `tail`. Returns when the message is
  // in: `tail`, or later when the ingress is busy.
  Moment take_ingress(const Moment& tail, Picoseconds duration) {
    ingress_free = later(tail, {ingress_free.at + duration, ingress_free.slip});
    return ingress_free;
  }

  // Returns whether a message with its last byte at `tail` that is in at `in` must go back to the
  // queue: it is not in yet, or an earlier message is in at the same time and must be delivered
  // first.
  bool must_queue(Picoseconds tail, Picoseconds in) {
    if (in <= tail && queued_until != in) return false;
    queued_until = in;
    return true;
  }
};

}  // namespace ghostrank
