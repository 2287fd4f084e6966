// To which address and in which namespace the sockets of an emulated NIC are bound.
//
// Errors: Error(environment). Threading: set-up, one thread.
#pragma once

#include "emulator/control/control.h"
#include "emulator/fabric/open.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The address that the job names, else the NIC's in the node's namespace (address_of_rail());
// without a namespace the one towards the rendezvous. `node`, `nic`: negative where an endpoint
// serves several; `nic` is numbered over the cluster.
EndpointBinding binding_of_nic(const JobSpec& spec, const World& world, Node node, Nic nic);

}  // namespace ghostrank
