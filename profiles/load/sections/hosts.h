// The real machines of a job, and which of them plays which emulated node.
//
// A placement is one host per emulated node, written as lines of "NODES HOST", where NODES is a
// list such as 0-3,8 and HOST a name in `hosts` or the number of a process. Every node must be in
// exactly one line. Errors name the file and the line.
//
// Threading: plain values; reading a placement reads its file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

std::span<const Key> host_keys();      // of an entry of `hosts`
std::span<const Key> host_nic_keys();  // of an entry of its `nics`

// Returns NICs in the order of their rails, which must be 0, 1, 2, ... without gaps.
std::vector<HostEntry> read_hosts(const Setting& hosts, int nics_per_node);

// Looks a path up as given, then in `near`, the job file's folder. `slice`: the nodes that are
// played; empty: all of `nodes`.
Placement read_placement(const Setting& placement, const std::vector<HostEntry>& hosts, int nodes,
                         const std::vector<Node>& slice, const std::string& near);

// A placement that is neither blocked nor cyclic, as a list of lines.
YamlValue placement_lines(const Placement& placement, const std::vector<HostEntry>& hosts,
                          const Mark& mark);

}  // namespace ghostrank
