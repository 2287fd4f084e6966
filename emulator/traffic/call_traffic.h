// What one call of a schedule sends between the members of its group, found by walking the
// schedule.
//
// Units: bytes on the wire, messages. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct CallTraffic {
  struct Edge {
    GroupRank from, to;
    int channel;
    std::uint64_t bytes, messages;
  };
  std::vector<Edge> edges;
  std::uint64_t call_bytes = 0;  // size of the call as nccl-tests counts it
};
CallTraffic walk(const Schedule& schedule);

// Steps on the longest chain of a call: the closed form of `row`; for a user's row without one, the
// rounds that the smallest call takes when it is played; if the row makes no such call, the steps
// of the busiest actor. `row` must have made `schedule`.
int longest_chain(const Algorithm& row, const Schedule& schedule);

}  // namespace ghostrank
