// Which ranks' NVLink ports carry nothing but transfers, one after the other, whatever the run's
// times are:
//
//   out   all that the rank sends inside its node it sends by one stream's sends
//   in    all that it receives inside its node it receives from one rank, by one stream
//
// A port that takes messages of one port alone holds none of them up: they come one behind the
// other. So how long a transfer from a lone port to a lone port takes is known when both of its
// ends have come (shard/node_transfers.h).
//
// Threading: immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/traffic/cluster.h"
#include "emulator/traffic/schedules.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class LonePorts {
 public:
  // Calls between nodes must pass no NVLink ports; collectives inside a node pass them where they
  // cannot be a delay (Schedules::can_be_delay).
  LonePorts(const Workload& workload, const Cluster& cluster, const Schedules& schedules);

  // Whether any rank of a node sends another one something between lone ports.
  bool any() const { return any_; }
  // Whether what a rank sends to another one of its node goes between lone ports.
  bool between(WorldRank from, WorldRank to) const {
    return ports_[from].lone_out && ports_[to].lone_in && ports_[to].source == from;
  }

 private:
  struct Ports {
    bool lone_out = true, lone_in = true;
    std::int32_t stream_out = kNone, stream_in = kNone;
    WorldRank source{kNone};
  };
  static constexpr std::int32_t kNone = -1;
  struct Use {  // by a stream of a role
    std::int32_t stream;
    const Op* op;
  };
  static std::vector<Use> uses_of(const Role& role);
  void pass(Ports& ports, const Use& use, WorldRank peer) const;

  VectorBy<WorldRank, Ports> ports_;
  bool any_ = false;
};

}  // namespace ghostrank
