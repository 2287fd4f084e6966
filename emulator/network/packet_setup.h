// The ports of a job's network as PacketNetwork plays them (fabric.network: packet): the links,
// then the egress of every NIC, then the port of the switch to every NIC. A wire of a NIC has half
// its latency, so a path has the latency of Topology::path_latency().
//
// Threading: a pure function.
#pragma once

#include "emulator/network/link_rates.h"
#include "emulator/network/packet_network.h"
#include "emulator/network/topology.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Throws Error(usage), with the place in the job file, if a port has no rate, or if the job's
// queues do not suit the ports. `links`: whose rates events change, which must outlive the network;
// null: none.
PacketNetwork::Setup packet_setup(const JobSpec& spec, const Topology& topology, std::size_t nics,
                                  const LinkRates* links);

}  // namespace ghostrank
