// How far the paced rate of real sends is off: the growth of the lateness with which messages leave
// a NIC, within a busy period of the NIC. Constant lateness costs no rate.
//
//   turns    |--A--||--B--||--C--|        |--D--|      a pause begins a new period
//   late       1      1      3              2
//   error      +--- 3 - 1 --+               0
//
// Units: emulated picoseconds. Threading: one owner (a shard).
#pragma once

#include "collectives/common/number.h"
#include "profiles/units.h"

namespace ghostrank {

class Pacing {
 public:
  // Begins a segment: nothing has been sent.
  void begin(int nics) {
    nics_.assign(nics, {});
    paced_ = ended_error_ = 0;
  }

  // A message whose turn at the NIC lasts `duration` from `start` on really left `late` after
  // `start`.
  void note(Nic nic, Picoseconds start, Picoseconds duration, Picoseconds late) {
    Period& p = nics_[nic];
    if (start > p.free_at) {
      ended_error_ += p.last_late - p.first_late;
      p.first_late = late;
    }
    p.last_late = late;
    p.free_at = start + duration;
    paced_ += duration;
  }

  Picoseconds paced() const { return paced_; }  // sum of the turns of all messages
  Picoseconds error() const {                   // signed
    Picoseconds sum = ended_error_;
    for (const Period& p : nics_) sum += p.last_late - p.first_late;
    return sum;
  }

 private:
  // A NIC's current busy period.
  struct Period {
    Picoseconds first_late = 0, last_late = 0, free_at = -1;
  };
  VectorBy<Nic, Period> nics_;
  Picoseconds paced_ = 0, ended_error_ = 0;
};

}  // namespace ghostrank
