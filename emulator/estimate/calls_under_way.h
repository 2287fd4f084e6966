// Calls of an estimated step that are under way at the same time, and share NICs and links. Each
// takes as long as it does alone, unless together they want more of a resource than there is: then
// they have fair rates (network/flow_network.h).
//
// Units: emulated picoseconds. Threading: one owner.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "emulator/network/flow_network.h"

namespace ghostrank {

inline constexpr Picoseconds kUnknown = std::numeric_limits<Picoseconds>::max();

class CallsUnderWay {
 public:
  // When a call ends, or kUnknown; and whom its end may let go on, for the caller.
  struct End {
    Picoseconds at = 0;
    const std::vector<std::size_t>* waiting = nullptr;
  };
  // `needs`: for which share of the time alone each resource is busy.
  struct Part {
    Picoseconds alone = 0;
    std::vector<FlowNetwork::Need> needs;
  };
  // Calls `in_turn` do not share resources with each other, but go one after the other. Behind
  // such a call come those of others, which nobody waits for.
  struct Call {
    Part own, others;
    bool in_turn = false;
  };

  explicit CallsUnderWay(std::size_t resources) : network_(resources), taken_(resources) {}

  // A call begins, not before the last end. `end` is set when it ends. Both stay in place until
  // then.
  void begin(const Call& call, Picoseconds start, End& end);
  // Lets time pass until the next call ends. Returns null if none is under way.
  const End* end_next();

 private:
  struct Start {
    Picoseconds at;
    std::uint64_t order;
    const Call* call;
    End* end;
    bool operator<(const Start& other) const {  // of a queue: the last one comes first
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Active {
    FlowNetwork::Id flow;
    const Call* call;
    End* end;  // null: the others of a call
  };
  void flow(const Part& part, const Call* call, End* end);
  void settle();
  void take_turns();
  void done(const Call& call);

  FlowNetwork network_;
  std::priority_queue<Start> starts_;
  std::vector<Start> waiting_;  // for their turns
  std::vector<bool> taken_;     // by a call in turn
  std::vector<Active> active_;
  std::vector<Picoseconds> ends_;  // of flows, at their present rates
  std::uint64_t begun_ = 0;
  Picoseconds now_ = 0;
};

}  // namespace ghostrank
