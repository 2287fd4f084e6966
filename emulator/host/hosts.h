// What the job says of its real machines, held against the machine this process runs on.
//
// Process h of a job plays entry h of `hosts`. The list belongs to fabric ofi; a run of one process
// (memory, virtual) ignores a list of several, as a note of the job says.
//
// Threading: set-up, one thread.
#pragma once

#include <string>

#include "profiles/job/job.h"

namespace ghostrank {

// Throws Error(usage) when the processes do not fit the list of hosts or the placement.
void check_hosts(const JobSpec& spec, int processes);

// The entry of a process; null: the job says nothing of it.
const HostEntry* host_entry(const JobSpec& spec, int process, int processes);

// Throws Error(environment) when this process was started on another machine than its entry names:
// the name must be this machine's host name (short or full) or resolve to one of its addresses.
void check_this_host(const JobSpec& spec, int process, int processes);

// The local address to which this process binds NIC `nic` of its emulated nodes: of the interface
// that its entry gives for that rail, else fabric.bind (an address or an interface), else the one
// that routes to process 0.
std::string data_address(const JobSpec& spec, int process, int processes,
                         const std::string& master_address, int nic);

}  // namespace ghostrank
