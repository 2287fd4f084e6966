// What the processes of a job settle before it starts: that they play the same job, how they reach
// each other and what they can carry.
//
// Threading: one owner thread per process, the one that owns `control`; every process calls
// assemble() once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/fabric/fabric.h"
#include "emulator/host/counters.h"
#include "emulator/packets/network_switch.h"
#include "emulator/packets/packets.h"
#include "emulator/result/result.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/flows.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "switch/ports/fd.h"

namespace ghostrank {

struct Ensemble {
  std::uint64_t nonce = 0;
  std::vector<HostReport> hosts;                  // facts known before the start
  std::vector<std::unique_ptr<Fabric>> fabrics;   // of this process, by shard
  std::vector<std::unique_ptr<Packets>> packets;  // likewise; empty if no scheme sends packets
  // To a switch outside ghostrank, likewise; empty if it serves no scheme.
  std::vector<std::unique_ptr<Packets>> switch_packets;
  std::vector<Fd> watched;                   // epoll sets for Fabric::watch(), by shard
  std::vector<CountedInterface> interfaces;  // used by the fabrics; none without a network
  double stream_bps = 0;             // of the tightest cap of any process (SendCap); 0: none
  double wire_bytes_per_second = 0;  // payload, each process, both ways at once; 0: not measured
  double seconds_per_message = 0;    // of the slowest process; 0: not measured
};

// `network_switch`: see switch_setup.h. Measures on `cpus`, those of the first engine thread;
// empty: on any CPU. Throws Error(environment) if the processes play different jobs, cannot reach
// each other, or were stopped meanwhile.
Ensemble assemble(const LoadedJob& job, const Cluster& cluster, const Flows& flows,
                  Control& control, NetworkSwitch* network_switch, const std::vector<int>& cpus);

}  // namespace ghostrank
