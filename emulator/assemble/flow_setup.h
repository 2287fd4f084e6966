// Opens the flows of a job: endpoints in their namespaces, addresses exchanged, and a message over
// every flow from both ends before the first iteration, so that no connection is set up during a
// measurement.
//
// Threading: the owner of `control`; afterwards each fabric belongs to its shard's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/fabric/open.h"
#include "emulator/host/counters.h"
#include "emulator/packets/packets.h"
#include "emulator/traffic/flows.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct OpenedFlows {
  std::vector<std::unique_ptr<NetworkFabric>> fabrics;  // of this process, by shard
  std::vector<std::unique_ptr<Packets>> packets;  // likewise; empty if no scheme sends packets
  std::vector<CountedInterface> interfaces;       // that this process binds to, without duplicates
  double stream_bps = 0;                          // of the tightest cap on them; 0: none has one
  // By process of the job:
  std::vector<std::string> providers, transports;
};

// Every process of the job calls this at the same time. Throws Error(environment) that names what
// cannot be opened or reached, or the limit that the flows exceed, and the remedy.
OpenedFlows open_flows(const JobSpec& spec, const Flows& flows, Control& control,
                       std::uint64_t nonce);

}  // namespace ghostrank
