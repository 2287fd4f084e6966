// The network between NICs as it is modelled: how fast each NIC is, and how long the way from one
// to another takes where nothing is in the way. A message is serialised by the NIC that sends it
// and by the one that receives it; what is between them never blocks (one ideal switch).
//
// Units: NICs are numbered over the whole cluster, node * nics_per_node + NIC of the node.
// Threading: immutable.
#pragma once

#include "emulator/network.h"
#include "profiles/job.h"

namespace ghostrank {

class Topology {
 public:
  explicit Topology(const JobSpec& spec)
      : first_server_nic_(spec.cluster.rank_nodes() * spec.cluster.nics_per_node),
        own_(LinkSpeed::from_rate(spec.cluster.nic.rate_bps, spec.cluster.nic.latency,
                                  spec.fabric.framing)),
        server_(LinkSpeed::from_rate(spec.cluster.servers.nic.rate_bps,
                                     spec.cluster.servers.nic.latency, spec.fabric.framing)),
        servers_(spec.cluster.all_nodes() > spec.cluster.rank_nodes()) {}

  // Of all NICs of ranks' nodes; of those of dedicated servers; of any one.
  const LinkSpeed& own() const { return own_; }
  const LinkSpeed& nic(int nic) const { return nic < first_server_nic_ ? own_ : server_; }

  // One way; each NIC answers for its half.
  Picoseconds latency(int from, int to) const {
    const Picoseconds a = nic(from).latency, b = nic(to).latency;
    return a == b ? a : (a + b) / 2;
  }
  // Of any two NICs of different nodes: so long nothing that one node does can reach another.
  Picoseconds least_latency() const {
    return servers_ ? std::min(own_.latency, server_.latency) : own_.latency;
  }

 private:
  int first_server_nic_;
  LinkSpeed own_, server_;
  bool servers_;
};

}  // namespace ghostrank
