// What one call of a schedule sends between the members of its group, found by walking the
// schedule.
//
// Units: bytes on the wire, messages. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"
#include "emulator/traffic/ledger.h"
#include "profiles/job/queue_pairs.h"

namespace ghostrank {

struct CallTraffic {
  struct Edge {
    GroupRank from, to;
    int channel;
    std::uint64_t bytes, messages;
    // Of several queue pairs: what each carries, if the first message is on the first pair. Parts
    // count as messages.
    std::vector<LedgerCell> by_pair{};

    // Whether it is the same whichever pair has the first message.
    bool any_turn(const QueuePairs& pairs) const {
      return pairs.split || messages % pairs.count == 0;
    }
  };
  std::vector<Edge> edges;
  std::uint64_t call_bytes = 0;  // size of the call as nccl-tests counts it
};
CallTraffic walk(const Schedule& schedule, const QueuePairs& pairs = {});

}  // namespace ghostrank
