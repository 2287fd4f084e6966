// What one call of a schedule sends between the members of its group, summed by walking it.
//
// Units: bytes on the wire, messages; ranks are positions in the group. Threading: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct CallTraffic {
  struct Edge {
    Rank from, to;
    int channel;
    std::uint64_t bytes, messages;
  };
  std::vector<Edge> edges;
  std::uint64_t call_bytes = 0;  // as nccl-tests counts the size of a call
};
CallTraffic walk(const Schedule& schedule);

// Steps on the longest chain of a call that a row made: its closed form or, of a user's row that
// has none, what the least call takes when it is played; the steps of the busiest actor where the
// row makes no such call.
int longest_chain(const Algorithm& row, const Schedule& schedule);

}  // namespace ghostrank
