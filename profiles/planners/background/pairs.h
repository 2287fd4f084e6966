// Who exchanges background with whom, and how much: groups of a server and its clients, or of ranks
// that send to each other (background.h).
//
// Errors: Error(usage). Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

enum class ServicePart : std::uint8_t { none, client, server, peer };  // of a rank in a service

// A kind of group that exchanges one background.
struct Service {
  std::size_t background = 0;
  std::uint16_t kind = 0;
  std::uint64_t bytes = 0;                // per client or peer and transfer
  VectorBy<WorldRank, ServicePart> part;  // by rank
};

// Refuses a pattern among ranks that has too few nodes, or too few ranks for its fan_in.
void check_pattern(const JobSpec& spec, const Background& background);

// Adds the groups of spec.background to the workload, whose servers have their numbers already.
std::vector<Service> make_services(const JobSpec& spec, Workload& workload);

}  // namespace ghostrank
