// How long a call takes when nothing else is under way: a shard of its own plays its schedule,
// message by message, on idle NICs and links. So the result has the library's credits, slices,
// channels and NVLink inside nodes, as fabric.network: loggp models them.
//
// Units: emulated picoseconds from the time when all members have come. Errors: Error(usage) as
// Schedules throws them. Threading: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class Topology;

// The way between two leaves whose NICs are members of a call.
struct IdleWay {
  std::uint32_t a = 0, b = 0;  // leaves
  int links = 0;
  double bps = 0;            // of each of its chains of links; 0: NICs are no faster
  std::uint32_t chains = 1;  // side by side; of several the routing chooses one for each message
};

struct IdleCall {
  Picoseconds duration = 0;
  std::vector<Picoseconds>
      end;  // by group rank; of a transfer: of its sender, then of its receiver
};

// Plays `op`, a collective of `group` or a transfer from `source` to `target`. A collective of a
// launch is played with the others that the launch has in the group, and takes as long as they.
// `topology`: that of the job, with the `ways` of the call's messages; null: there are no links.
// Without it, `beside` may name groups that make the same call at the same time and share its NICs;
// the times are then those of the last of all.
IdleCall play_alone(const JobSpec& spec, const Workload& workload, std::uint32_t group,
                    const Op& op, GroupRank source, GroupRank target, const Topology* topology,
                    const std::vector<IdleWay>& ways = {},
                    const std::vector<std::uint32_t>& beside = {});

// How long collectives of a group inside one node take, message by message, with this latency
// inside the node, alone but for each other: they are one launch.
Picoseconds play_in_node(const JobSpec& spec, const Workload& workload, std::uint32_t group,
                         const std::vector<Op>& calls, Picoseconds latency);

}  // namespace ghostrank
