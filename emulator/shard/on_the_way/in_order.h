// Reorders the messages of a connection that takes several paths at once, or the notes of one whose
// receiver's NIC may take longer for them than the sender's (note_order.h). The receiver delivers
// them in the order in which they were sent: each one when all earlier ones have come, too.
//
// Units: emulated picoseconds. Threading: one owner (a shard: the sender's numbers messages, the
// receiver's holds them back).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/network/topology.h"
#include "emulator/shard/events/event.h"

namespace ghostrank {

class InOrder {
 public:
  // Returns the number of the message that is about to leave, from 1.
  std::uint32_t number(const RoutedConnection& connection) { return ++sent_[connection]; }

  // Takes message `number`, which is in at e.t. Calls go_on(event) for every message that can now
  // be delivered, in order, with the time at which all messages up to it are in.
  template <typename GoOn>
  void arrived(const RoutedConnection& connection, std::uint32_t number, const Event& e,
               const GoOn& go_on) {
    Incoming& in = incoming_[connection];
    const auto before = [](const Waiting& w, std::uint32_t n) { return w.number < n; };
    in.waiting.insert(std::lower_bound(in.waiting.begin(), in.waiting.end(), number, before),
                      {number, e});
    std::size_t gone = 0;
    for (; gone < in.waiting.size() && in.waiting[gone].number == in.heard + 1; ++gone) {
      Event& event = in.waiting[gone].event;
      ++in.heard;
      in.last = event.t.at = std::max(in.last, event.t.at);
      go_on(event);
    }
    in.waiting.erase(in.waiting.begin(), in.waiting.begin() + static_cast<std::ptrdiff_t>(gone));
  }

  void clear() {
    sent_.clear();
    incoming_.clear();
  }

 private:
  using Hash = RoutedConnection::Hash;
  struct Waiting {
    std::uint32_t number;
    Event event;
  };
  struct Incoming {
    std::uint32_t heard = 0;       // number of the last message delivered
    Picoseconds last = 0;          // its time
    std::vector<Waiting> waiting;  // by number
  };
  std::unordered_map<RoutedConnection, std::uint32_t, Hash> sent_;
  std::unordered_map<RoutedConnection, Incoming, Hash> incoming_;
};

}  // namespace ghostrank
