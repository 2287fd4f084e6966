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

}  // namespace ghostrank
