// Joins the ranks with a switch outside ghostrank: opens a socket for every member of every
// communicator that the switch serves, tells the switch of them, and then lets every rank exchange
// the scheme's greeting with it. So a switch that is not there, has no room or speaks another form
// is reported before the job sends a byte.
//
//   sockets -> addresses gathered -> process 0: admit -> greeting until every answer has come
//
// A round of the greeting sends what has not been answered and listens; it gives up after kPatience
// successive rounds without a further answer.
//
// Threading: the owner of `control` calls it; afterwards each Packets belongs to its shard's
// thread.
#pragma once

#include <memory>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/packets/network_switch.h"
#include "emulator/packets/packets.h"
#include "emulator/traffic/cluster.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Every process of the job calls this at the same time. `network_switch`: null where the switch
// needs no telling. Returns one Packets per shard; none where no scheme is served outside. Throws
// Error(environment), or Error(usage) where the job does not fit a switch.
std::vector<std::unique_ptr<Packets>> open_switch(const JobSpec& spec, const Cluster& cluster,
                                                  Control& control, NetworkSwitch* network_switch);

}  // namespace ghostrank
