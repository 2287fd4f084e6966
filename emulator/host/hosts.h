// Checks the real machines that a job names against the machine of this process.
//
// Process h of a job plays entry h of `hosts`. The list belongs to fabric ofi; a run of one process
// (memory, virtual) ignores a list of several, as a note of the job says.
//
// Threading: set-up, one thread.
#pragma once

#include <string>

#include "collectives/common/number.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Throws Error(usage) if the processes do not fit the list of hosts or the placement.
void check_hosts(const JobSpec& spec, int processes);

// The entry of a process; null: the job has none for it.
const HostEntry* host_entry(const JobSpec& spec, Host host, int processes);

// Throws Error(environment) if the entry of this process names another machine: the name must be
// this machine's host name (short or full) or resolve to one of its addresses.
void check_this_host(const JobSpec& spec, Host host, int processes);

// The local address to which this process binds NIC number `nic` of each of its emulated nodes:
// that of the interface that its entry gives for the rail, else fabric.bind (an address or an
// interface), else the address that routes to process 0.
std::string data_address(const JobSpec& spec, Host host, int processes,
                         const std::string& master_address, int nic);

}  // namespace ghostrank
