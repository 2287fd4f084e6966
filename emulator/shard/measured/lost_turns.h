// What messages lose that come to a NIC in another order than they were due. Shards of a process
// tell each other of messages; where this machine is late, one that was due first may come behind
// others, and waits for them. Nobody was late then by so much, but the wait is this machine's.
//
// Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <cstddef>

#include "collectives/common/number.h"
#include "emulator/common/moment.h"

namespace ghostrank {

class LostTurns {
 public:
  // Begins a segment. No NICs: where messages come in order, in virtual time, of one shard, and on
  // a real network, which has an order of its own.
  void begin(std::size_t nics) { latest_due_.assign(nics, 0); }
  bool possible() const { return !latest_due_.empty(); }

  // A message that comes to the NIC at `came` is in at `in`. Returns that with all of the wait as
  // slip if one that was due later has come in before: an upper bound, for some of the wait may be
  // for others.
  Moment charged(Nic nic, const Moment& came, Moment in) {
    const Picoseconds due = came.at - came.slip;
    Picoseconds& latest = latest_due_[nic];
    if (due < latest && in.at > came.at) in.slip = std::max(in.slip, in.at - due);
    latest = std::max(latest, due);
    return in;
  }

 private:
  VectorBy<Nic, Picoseconds> latest_due_;
};

}  // namespace ghostrank
