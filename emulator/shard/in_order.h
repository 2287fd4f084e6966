// Messages of a connection that takes several ways at once overtake each other. Their receiver
// gives them on in the order in which they were sent, each when those before it have come, too.
//
// Threading: one owner (a shard: numbers at the sender's, waiting at the receiver's).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/common/random.h"
#include "emulator/network/topology.h"
#include "emulator/shard/event.h"

namespace ghostrank {

class InOrder {
 public:
  // Of the message that is about to leave; from 1.
  std::uint32_t number(const RoutedConnection& connection) { return ++sent_[connection]; }

  // Message `number` is in at e.t. Calls go_on(event) for every message that may now be given on,
  // in order; its time is when all up to it are in.
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
  struct Hash {
    std::size_t operator()(const RoutedConnection& c) const {
      return RandomBits({c.group, c.channel, static_cast<std::uint64_t>(c.from),
                         static_cast<std::uint64_t>(c.to)})
          .next();
    }
  };
  struct Waiting {
    std::uint32_t number;
    Event event;
  };
  struct Incoming {
    std::uint32_t heard = 0;       // number of the last one that was given on
    Picoseconds last = 0;          // and its time
    std::vector<Waiting> waiting;  // by number
  };
  std::unordered_map<RoutedConnection, std::uint32_t, Hash> sent_;
  std::unordered_map<RoutedConnection, Incoming, Hash> incoming_;
};

}  // namespace ghostrank
