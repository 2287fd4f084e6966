// How long the CPU quota of this process's control group, or of one around it, has kept its threads
// from running.
//
// Threading: pure functions of the files.
#pragma once

#include <optional>
#include <string>

namespace ghostrank {

// Returns how many seconds the control group that was throttled longest was throttled so far; empty
// where no group has a quota's statistics. `cgroups`: /proc/self/cgroup; `mounted`: the mount point
// of control groups.
std::optional<double> throttled_seconds(const std::string& cgroups = "/proc/self/cgroup",
                                        const std::string& mounted = "/sys/fs/cgroup");

}  // namespace ghostrank
