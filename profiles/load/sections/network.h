// The network between a job's nodes (`cluster.topology`), its queues (`fabric.queues`), the
// placement of its servers (`servers.placement`), and the switch on a real one (`switch`): turns
// names into rows and refuses combinations that do not fit.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Prefix of a switch.socket that names HOST:PORT of the controller that SwitchML publishes.
inline constexpr std::string_view kControllerPrefix = "grpc:";

// `own`: the plugins' rows. `out` must have the cluster's other values. Throws Error(usage).
void read_server_placement(const Settings& in, const Algorithms& own, ServerSpec& out);
// `near`: the folder of the job, where files are looked for, too. `out` must have its fabric.
// Throws Error(usage).
void read_network_switch(const Settings& in, const std::string& near, JobSpec& out);
void read_topology(const Settings& in, const Algorithms& own, const std::string& near,
                   ClusterSpec& out);
QueueSpec read_queues(const Settings& in, const Algorithms& own);
Framing read_framing(const Settings& in, std::uint32_t mtu);
QueuePairs read_queue_pairs(const Settings& in, const Algorithms& own);
int read_dscp(const Settings& in, FabricKind kind);  // -1: none is given

}  // namespace ghostrank
