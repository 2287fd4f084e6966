// The queues of a network that is played packet by packet (fabric.network: packet): what a port may
// hold, what it does before it is full, and how a NIC sends.
//
// Units: bytes, emulated picoseconds. Threading: a value.
#pragma once

#include <cstdint>

#include "collectives/congestion_control.h"
#include "profiles/units.h"

namespace ghostrank {

enum class Scheduling : std::uint8_t { fifo, fair };

struct QueueSpec {
  std::uint64_t buffer = 2 << 20;  // of a switch, for each of its ports
  bool pause = true;               // priority flow control: a full buffer stops its sender
  Scheduling scheduling = Scheduling::fifo;
  const CongestionControl* control = &congestion_controls().front();
  std::uint64_t window = 0;  // bytes of a connection in flight; 0: unlimited
  // ECN marks a packet that arrives at a queue of `mark_from` bytes or more, with a probability
  // that grows from 0 to `mark_most` at `mark_to`, and always beyond `mark_to`. 0, 0: 50 KiB and
  // 2 MiB at 400 Gb/s, in proportion to the port's rate.
  std::uint64_t mark_from = 0, mark_to = 0;
  double mark_most = 0.01;
  Picoseconds retransmit = 1000 * kPicosPerMicro;  // after so long without an acknowledgement
};

}  // namespace ghostrank
