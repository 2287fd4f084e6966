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

}  // namespace ghostrank
