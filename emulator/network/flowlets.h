// Which flowlet of its connection a message belongs to, where the routing chooses a path for each
// flowlet (Routing::Per). A flowlet ends when its connection has sent nothing for the gap.
//
//   sends   ███ ██ ████          ███ ███
//           flowlet 1    > gap   flowlet 2
//
// Units: emulated picoseconds. Threading: one owner (the sender's shard).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "emulator/network/topology.h"

namespace ghostrank {

class Flowlets {
 public:
  explicit Flowlets(Picoseconds gap) : gap_(gap) {}

  // Returns the number, from 1, of the flowlet of a message that leaves from `start` to `end`.
  // Call it in the order of sending.
  std::uint32_t number(const RoutedConnection& connection, Picoseconds start, Picoseconds end) {
    State& state = states_[connection];
    if (state.number == 0 || start - state.until > gap_) ++state.number;
    state.until = std::max(state.until, end);
    return state.number;
  }
  // The connection's present flowlet lasts at least until then.
  void lasts(const RoutedConnection& connection, Picoseconds until) {
    State& state = states_[connection];
    state.until = std::max(state.until, until);
  }
  // The number that number() returned last; 0: none.
  std::uint32_t present(const RoutedConnection& connection) const {
    const auto found = states_.find(connection);
    return found == states_.end() ? 0 : found->second.number;
  }
  void clear() { states_.clear(); }

 private:
  struct State {
    std::uint32_t number = 0;
    Picoseconds until = 0;
  };
  Picoseconds gap_;
  std::unordered_map<RoutedConnection, State, RoutedConnection::Hash> states_;
};

}  // namespace ghostrank
