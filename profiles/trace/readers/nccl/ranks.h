// Finds each process's rank in the job and the members of each communicator, from the memberships
// that the processes report. The communicator with most ranks is the job.
// Errors: Error(usage). Threading: pure.
#pragma once

#include <string>
#include <vector>

#include "profiles/trace/readers/nccl/calls.h"
#include "profiles/trace/trace.h"

namespace ghostrank {

// Appends a group to `trace` for each communicator, in their order (no members: the whole job), and
// sets its number of ranks. Returns the rank in the job of each membership. `path` is for errors.
std::vector<WorldRank> name_ranks(const std::vector<NcclComm>& comms,
                                  const std::vector<NcclMembership>& memberships,
                                  const std::string& path, Trace& trace);

}  // namespace ghostrank
