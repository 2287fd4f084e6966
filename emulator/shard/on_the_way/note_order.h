// When reliable notes between two NICs are in, where the receiver's NIC may take longer for a note
// than the sender's: a short note that leaves behind a long one would otherwise be in before it,
// and reliable notes keep their order (collectives/agent.h).
//
//   sender   ------long------short-
//   receiver -----------------long------------------
//                         ------short-                 in with the long one, not before
//
// Most notes are in after all that their NIC sent before; only the others look through those that
// are still on their way.
//
// Units: emulated picoseconds. Memory: notes on their way, by sending NIC. Threading: one owner (a
// shard).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "collectives/common/number.h"
#include "profiles/units.h"

namespace ghostrank {

class NoteOrder {
 public:
  void begin(std::size_t nics) { senders_.assign(nics, {}); }

  // Returns when a note is in that would be in at `at`, were it alone. Called in the order in which
  // a NIC's notes leave; `soonest`: none that leaves later is in before.
  Picoseconds in(Nic from, Nic to, Picoseconds at, Picoseconds soonest) {
    Sender& sender = senders_[static_cast<std::size_t>(from.value())];
    sender.forget(soonest);
    if (at < sender.latest)
      for (std::size_t i = sender.first; i < sender.notes.size(); ++i)
        if (sender.notes[i].to == to) at = std::max(at, sender.notes[i].in);
    sender.latest = std::max(sender.latest, at);
    sender.notes.push_back({at, to});
    return at;
  }

 private:
  struct OnWay {
    Picoseconds in = 0;
    Nic to;
  };
  struct Sender {
    std::vector<OnWay> notes;  // from `first` on; in the order in which they left
    std::size_t first = 0;
    Picoseconds latest = 0;

    void forget(Picoseconds soonest) {
      while (first < notes.size() && notes[first].in <= soonest) ++first;
      if (2 * first <= notes.size()) return;
      notes.erase(notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(first));
      first = 0;
    }
  };

  std::vector<Sender> senders_;
};

}  // namespace ghostrank
